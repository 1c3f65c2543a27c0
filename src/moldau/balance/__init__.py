"""Balance a cluster: plan which replicas move, and move them."""
