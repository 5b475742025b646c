"""The fault harness: `make faults` breaks the running application under load and counts the effects."""
