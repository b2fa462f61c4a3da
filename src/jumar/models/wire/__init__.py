"""Formats and prices of model providers: requests, replies, redaction of keys, prompt caching.

A `Request` and a provider enter; bytes for HTTP leave, and replies come back as values. Imports the core.
"""
