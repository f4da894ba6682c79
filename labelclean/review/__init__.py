"""The local review page: its server, the decisions people make there, what they tell us."""
