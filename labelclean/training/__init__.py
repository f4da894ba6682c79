"""How optimisation runs: the loop, features, checkpoints, inference."""
