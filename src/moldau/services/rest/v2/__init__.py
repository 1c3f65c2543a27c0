"""API v2, and the content types of v1."""
