"""One file = one test runner adapter. Found by module name; it starts no process."""
