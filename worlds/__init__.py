"""Societies: one world a file, with its rules, baselines and outcome metrics."""
