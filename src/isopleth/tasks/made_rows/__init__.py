"""New rows like those of a table, drawn from a density of it, and their comparison with the table."""
