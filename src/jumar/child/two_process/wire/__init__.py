"""Messages between the two processes, and what is told in them of functions and exceptions."""
