"""Tools: declared by one decorated function, called by one dispatcher (R-TOOL-19, R-TOOL-20)."""
