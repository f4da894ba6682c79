"""Measuring ourselves: planted noise, metrics, comparisons."""
