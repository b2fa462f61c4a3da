"""What lies on the disk: bytes by their hashes, trees of them, and folders made equal to a tree or read into one."""
