"""Applications of Streams on a simulated cluster."""
