"""Tables of budgets."""
