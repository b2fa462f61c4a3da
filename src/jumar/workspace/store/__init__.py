"""Folder."""
