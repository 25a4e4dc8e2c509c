"""Proposers: from the history of a search to its next configuration."""
