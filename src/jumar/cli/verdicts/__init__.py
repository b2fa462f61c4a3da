"""Commands that judge and change nothing: `score`, `rescore`, `check`.

Trees and tasks enter; verdicts of `jumar.runs.scoring` and `jumar.importing` are shown.
"""
