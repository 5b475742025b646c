"""Tables of orchestrator."""
