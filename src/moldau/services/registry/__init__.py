"""Schema Registry: schemas of records, their versions and compatibility, over HTTP."""
