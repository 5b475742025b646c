"""Published versions of workflows, and what a tenant is seeded with."""
