"""Which rows are unlikely, how sure is that, and which columns make them so."""
