"""Runs connectors and tasks: threads, clients, stores around the decisions in `machine/`."""
