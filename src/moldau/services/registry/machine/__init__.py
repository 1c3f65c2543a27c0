"""What the registry decides, and what it remembers: pure."""
