"""Commands for replicas: where they are, which one leads, whether they are equal."""
