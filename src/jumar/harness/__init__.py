"""Around the kernel: where tasks come from and how many runs are made of them."""
