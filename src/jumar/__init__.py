"""Tests decide when a coding agent may edit, what of its work is kept, and when it stops."""
