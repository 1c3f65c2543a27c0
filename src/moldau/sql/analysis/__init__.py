"""What a query means: its sources, columns and types, and whether it is allowed."""
