"""What runs and safety rules put before people to look at."""
