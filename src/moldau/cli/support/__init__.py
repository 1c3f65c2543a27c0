"""What commands share: arguments, the cluster to talk to, errors and output."""
