"""The tools that ship; a file more is a tool more, no list is touched."""
