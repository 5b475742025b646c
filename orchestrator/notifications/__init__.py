"""Messages about runs: webhook endpoints, their deliveries and their log."""
