"""Where a series changes."""
