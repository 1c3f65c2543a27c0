"""Typed data: schemas, values, and the languages in which schemas are written. Pure."""
