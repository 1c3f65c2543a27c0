"""Data contracts: the rules of a schema, run when its data is written, read or migrated."""
