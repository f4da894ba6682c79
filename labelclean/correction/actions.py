"""What becomes of a row: the words of issues.parquet's column `action`."""

KEEP, RELABEL, REVIEW, DROP, UNREADABLE = "keep", "relabel", "review", "drop", "unreadable"
ACTIONS = (KEEP, RELABEL, REVIEW, DROP, UNREADABLE)
NO_BETTER = "none fits"
"""What is said in place of a suggestion that is the given label itself."""
