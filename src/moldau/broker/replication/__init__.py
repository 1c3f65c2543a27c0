"""The partitions hosted on this node, and their replication."""
