"""State of a run as frozen values: events, verdicts, budget, ratchet, claims, settings, `RunState`.

Field names of events are written to journals and stay as they are. Imports nothing of jumar.
"""
