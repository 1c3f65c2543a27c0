"""The guided course."""
