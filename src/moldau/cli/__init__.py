"""The command line: the only reader of argv and environment."""
