"""Tables: reading, kinds of columns, checks of what estimators receive, and writing."""
