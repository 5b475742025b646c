"""The tools of the demo company, whose services are a process of their own; a new module registers itself."""
