"""What runs a topology."""
