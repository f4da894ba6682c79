"""Samples: their table, their pictures, their identity."""
