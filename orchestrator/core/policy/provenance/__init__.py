"""Provenance of values: one normal form for text that reads the same, and search for one in another."""
