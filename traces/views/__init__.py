"""Pages over the trace."""
