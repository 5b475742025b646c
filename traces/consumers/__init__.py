"""The doors of the live view: WebSockets, and server-sent events for programs (R-API-5)."""
