"""Goodness of fit: whether a sample is from a density with a known score."""
