"""The pure half: values in, values out. Nothing here reads a clock, a file, a socket or a random number."""
