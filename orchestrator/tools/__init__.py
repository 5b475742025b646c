"""Tools: the registry, servers, destinations, safeguards, and how a call is sent."""
