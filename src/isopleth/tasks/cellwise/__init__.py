"""Wrong cells of a table, and what would be usual in their place."""
