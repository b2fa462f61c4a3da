"""Extraction of files and actions from the text of a reply, for models that call no tools.

A reply and the present files enter; drafts of whole files, or a sentence on why a block is not one, leave. A block is
taken only if it can be nothing else. Imports `languages` and the core.
"""
