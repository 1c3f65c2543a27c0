"""Redrive: records of a dead-letter topic, sent back to where they came from."""
