"""State that tests arrange for the code under test, in whose process it is arranged as well."""
