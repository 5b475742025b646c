"""What runs cost: prices, their corrections, ceilings and extensions."""
