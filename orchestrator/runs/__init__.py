"""Runs: submission, pinned versions, signals, retries, emergency stops, with their tables and reads."""
