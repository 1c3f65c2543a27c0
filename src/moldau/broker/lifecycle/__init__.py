"""A broker's side of its membership in the cluster."""
