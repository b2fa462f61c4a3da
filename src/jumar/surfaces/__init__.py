"""What a person or a program touches. Parses input, shows output, decides nothing."""
