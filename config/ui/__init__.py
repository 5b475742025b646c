"""Pure helper functions of the console's template tags, not imported by other code."""
