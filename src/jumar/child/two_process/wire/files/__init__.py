"""Files of the two processes: which cross, and which paths the code under test may name."""
