"""Training and evaluation records from runs: kept edits as red-green triples, exported and replayed.

Journals and their objects enter; JSONL leaves, without anything of the machine. Imports `runs/setup`, `verify` and
what lies below them.
"""
