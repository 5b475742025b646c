"""Budgets' doors for programs: translate, one call each (R-API-1, R-API-2)."""
