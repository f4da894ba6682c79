"""Training: where models meet samples, and the only room that spends real time."""
