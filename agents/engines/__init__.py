"""Engines: what answers model calls."""
