"""What calls of tools and of models share: circuit breakers, authorization to send, deadlines."""
