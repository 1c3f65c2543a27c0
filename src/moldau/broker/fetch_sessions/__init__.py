"""Fetch sessions (KIP-227) and fetches that wait for bytes."""
