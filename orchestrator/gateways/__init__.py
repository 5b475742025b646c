"""The outward ports: models, tools, the queue, time and chance. Nothing here writes a table."""
