"""ksqlDB's scalar and table functions, one module per family; each has a list FUNCTIONS."""
