"""The inbox and the decision for people."""
