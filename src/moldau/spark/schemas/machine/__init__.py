"""What the options of columns with schemas mean."""
