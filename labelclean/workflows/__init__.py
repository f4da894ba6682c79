"""One file per command: the order in which the rooms are walked through."""
