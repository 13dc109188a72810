"""A model's verdicts, and what they are worth."""
