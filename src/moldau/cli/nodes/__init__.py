"""Nodes on this machine: configured, formatted, started, watched and stopped."""
