"""Cassandra: records as rows."""
