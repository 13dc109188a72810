"""Reports on runs: one model, made from stored runs, and the texts that it is written as."""
