"""Descriptions of tables: what each column is taken as, and what is odd."""
