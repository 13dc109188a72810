"""The record: one SQLite file a run."""
