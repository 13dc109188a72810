"""What learns from the record: trajectories, credit, losses and the loops of self-play."""
