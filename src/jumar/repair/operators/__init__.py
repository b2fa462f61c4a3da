"""Mutation operators: each file is one kind of small change, as a generator of edits at a site.

A site of a syntax tree enters; edits leave. Imports `repair/source`.
"""
