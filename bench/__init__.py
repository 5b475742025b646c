"""Measurements of docs/performance.md, each one command."""
