"""Normal-form games and their classic strategies."""
