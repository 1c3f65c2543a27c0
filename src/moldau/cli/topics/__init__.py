"""Commands for topics and the offsets of their partitions."""
