"""The fast trial of repair candidates: forks a warm interpreter and swaps changed code into it.

Candidates enter; one line per test leaves. It only orders candidates: the verifier still decides. Standard library,
pytest and `jumar.child` only.
"""
