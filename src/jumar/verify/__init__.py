"""The trusted verifier: runs the expected tests of a tree in fresh rooms and grades the evidence.

A tree enters; a `Verdict` with its grade and warnings leaves. `challenge/` falsifies tests; processes are started by
`jumar.process`.
"""
