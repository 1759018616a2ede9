"""Which cells of a table are wrong, and what would be usual in their place."""
