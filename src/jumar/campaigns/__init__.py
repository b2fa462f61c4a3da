"""Works on many tasks, several times each: one plan, one ledger, several processes, and a typed end for every run.

Task paths and options enter; a folder with the plan, the ledger and one run directory per rollout leaves. It starts
runs through `runs`, and is used by the command line.
"""
