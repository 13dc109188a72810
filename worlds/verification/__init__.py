"""Agents who check each other's work, under a rule that they may break together."""
