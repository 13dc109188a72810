"""What got to whom: secrets in texts, leaks, contagion, inference, forgetting."""
