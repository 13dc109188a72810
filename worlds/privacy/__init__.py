"""Privacy: who may learn what, and who tries to."""
