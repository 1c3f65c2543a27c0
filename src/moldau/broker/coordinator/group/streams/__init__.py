"""Streams groups (KIP-1071): tasks of a topology shared out among the members of an application."""
