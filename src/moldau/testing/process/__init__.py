"""What runs outside the test's own process: the template that nodes are forked from, and nodes."""
