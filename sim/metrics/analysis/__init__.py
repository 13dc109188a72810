"""What a failure comes from, how sure a number is, what another policy would have earned."""
