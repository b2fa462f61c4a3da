"""One file = one way to confine a process: it says what to start in its place, and starts nothing itself."""
