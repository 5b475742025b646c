"""Measurements of the README, each one command."""
