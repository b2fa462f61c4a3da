"""Process of the tests: stands in for the code under test, and lets it decide nothing."""
