"""Columns with schemas of a registry: bytes to typed columns and back, without Spark's packages."""
