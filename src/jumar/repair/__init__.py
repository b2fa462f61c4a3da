"""The offline proposer: mutation search over a concrete syntax tree, ordered by suspicion.

Sources and results of tests enter; candidate edits leave, best first. It proposes; the verifier decides.
"""
