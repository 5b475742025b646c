"""What runs ask of people: edits, queues, changes in doubt."""
