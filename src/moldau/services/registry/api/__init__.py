"""The REST API: one file per family of paths, one table of routes."""
