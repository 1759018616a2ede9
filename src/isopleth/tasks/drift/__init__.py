"""When the rows of a stream stop looking like those of a reference."""
