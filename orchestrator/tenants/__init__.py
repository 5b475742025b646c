"""Tenants as platform administrators run them, and the limits of one."""
