"""What the style guide shows."""
