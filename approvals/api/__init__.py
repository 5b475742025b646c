"""The inbox for programs."""
