"""The Control Center: a web console for clusters and everything that runs on them."""
