"""Partitions and who may read what."""
