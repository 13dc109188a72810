"""Worlds in which a few agents divide something between them."""
