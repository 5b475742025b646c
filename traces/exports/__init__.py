"""Exports of a trace."""
