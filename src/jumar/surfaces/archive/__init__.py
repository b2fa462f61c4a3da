"""Commands on runs that lie on the disk: `diff`, `apply`, `runs`, `clean`."""
