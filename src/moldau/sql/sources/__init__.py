"""Streams and tables: their schemas, formats and properties, and the metastore that holds them."""
