"""Runs ksqlDB's own cases against the SQL engine."""
