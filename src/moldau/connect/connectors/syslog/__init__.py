"""Syslog: messages of the network as records."""
