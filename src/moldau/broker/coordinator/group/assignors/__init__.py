"""The server's own assignors: who gets which partitions."""
