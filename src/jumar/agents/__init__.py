"""Agents are pure strategies: from state to request, from reply to actions."""
