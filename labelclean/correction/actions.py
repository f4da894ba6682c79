"""What becomes of a row: the words of issues.parquet's column `action`."""

KEEP, RELABEL, REVIEW, DROP, UNREADABLE = "keep", "relabel", "review", "drop", "unreadable"
ACTIONS = (KEEP, RELABEL, REVIEW, DROP, UNREADABLE)
