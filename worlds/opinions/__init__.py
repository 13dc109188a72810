"""Societies in which agents see what others think, and may come to think so too."""
