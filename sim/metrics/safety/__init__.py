"""Attacks, violations, deception, persuasion, conformity, drift."""
