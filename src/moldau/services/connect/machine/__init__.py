"""What the service answers, without acting."""
