"""Language models: profiles of a tenant, the queue in front of a model, calls of every provider."""
