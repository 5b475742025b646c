"""The loop that advances runs, one durable transition at a time."""
