"""What to do about a suspect: keep, relabel, send to review, or drop."""
