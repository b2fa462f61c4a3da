"""The journal of a run, one checked line per event, and the ledger of money that runs share.

Events enter; lines that survive a crash leave, and are read back and audited. Imports the core and safe paths.
"""
