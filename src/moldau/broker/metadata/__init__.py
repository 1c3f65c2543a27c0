"""The controller and the cluster image."""
