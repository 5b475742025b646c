"""The pages of a tenant: people, keys, audit log."""
