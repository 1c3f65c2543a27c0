"""The share coordinator: the state of share partitions, stored in `__share_group_state`."""
