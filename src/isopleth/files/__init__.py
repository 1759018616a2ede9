"""Tables in files: reading, chunks, writing."""
