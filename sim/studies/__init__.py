"""What is learnt of stored runs by making others: counterfactuals, judgings, interviews."""
