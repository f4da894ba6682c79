"""Doors with the signatures of other tools, so that a switch is one import."""
