"""Process of the code under test: serves its modules to the process of the tests."""
