"""Queries with ENGINE='spark-sql': compiled to DataFrame operators where the result is the same."""
