"""Containers that both sides know: their changes, and which of those the tests see."""
