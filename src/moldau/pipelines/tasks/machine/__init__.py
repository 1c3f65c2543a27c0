"""What this package decides: pure code without clock, randomness, files or sockets."""
