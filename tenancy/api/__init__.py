"""The tenant's own doors for programs: its people and its keys (R-API-3)."""
