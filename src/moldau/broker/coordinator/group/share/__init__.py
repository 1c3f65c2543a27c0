"""Share groups: membership, assignment, and which share partitions have state."""
