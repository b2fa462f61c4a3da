"""Commands that compare agents."""
