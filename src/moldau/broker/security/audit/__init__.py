"""Who did what: one JSON line for each authentication and each decision about an operation."""
