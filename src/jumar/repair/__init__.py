"""The offline proposer: mutation search over a concrete syntax tree. It proposes; the kernel verifies."""
