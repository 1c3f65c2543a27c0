"""What the server says, decided without I/O."""
