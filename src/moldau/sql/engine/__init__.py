"""Executes statements: sources, persistent queries, inserted values, pull and push queries."""
