"""Scenario files: read, checked, and planned as worlds with their casts."""
