"""The tools that a model may call: their schema, their descriptions, and the decoding of calls into actions.

A tool call enters; an `Action` leaves, with a fault in words that the model can mend where the call makes no sense.
Imports the core.
"""
