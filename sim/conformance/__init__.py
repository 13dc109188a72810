"""What a world and an agent have to keep, tried out."""
