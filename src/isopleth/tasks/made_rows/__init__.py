"""Made rows: new rows like those of a table."""
