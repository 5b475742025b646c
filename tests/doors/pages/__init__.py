"""Pages, as a browser without script asks for them."""
