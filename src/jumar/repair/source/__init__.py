"""Views of one source file for repair: functions, blocks, scopes, edit sites and spans.

Text enters; positions and texts leave. Imports nothing else of jumar.
"""
