"""One file = one way to get a completion. Found by module name."""
