"""Names of tests: from ids that a task gives to what the runner knows, or to the command that runs one test."""
