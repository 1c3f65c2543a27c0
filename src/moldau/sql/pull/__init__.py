"""Pull queries: what a table holds now, by keys, by a range of keys, or by looking at all rows."""
