"""Which rules run, and in which order."""
