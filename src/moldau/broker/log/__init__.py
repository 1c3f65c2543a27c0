"""The commit log: segments, indexes, recovery."""
