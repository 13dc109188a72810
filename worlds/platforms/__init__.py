"""Societies that meet on a platform: posts, feeds and messages."""
