"""The demo company's tables, and what it keeps in them."""
