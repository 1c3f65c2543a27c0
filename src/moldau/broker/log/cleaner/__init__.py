"""Log compaction: the last record of every key, at the same offsets, in less space."""
