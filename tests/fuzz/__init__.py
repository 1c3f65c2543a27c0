"""Sends malformed frames to a broker: `python -m fuzz`, see docs/security-attacks.md."""
