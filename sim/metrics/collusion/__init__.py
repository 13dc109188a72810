"""Acting together against the rest: prices, bids, covert channels, coalitions."""
