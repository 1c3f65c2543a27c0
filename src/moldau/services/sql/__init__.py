"""ksqlDB's server: statements and queries over HTTP."""
