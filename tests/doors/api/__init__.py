"""The API from outside, by real keys."""
