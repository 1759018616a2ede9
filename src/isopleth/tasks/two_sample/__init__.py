"""Whether two samples have one distribution, and where they differ."""
