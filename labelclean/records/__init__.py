"""What training said about each sample."""
