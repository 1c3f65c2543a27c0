"""Share groups on the data path: share partitions, sessions, and where their state is stored."""
