"""The pages of money."""
