"""Running code that nobody vouches for: small scripts in Monty, whole Python in bubblewrap."""
