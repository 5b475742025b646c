"""Tables of traces."""
