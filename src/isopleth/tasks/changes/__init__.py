"""Change points of a series."""
