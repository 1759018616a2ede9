"""Two-sample tests: whether two samples have the same distribution, and where they differ."""
