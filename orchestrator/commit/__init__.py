"""The one transaction of a run's commit: read, walk, write."""
