"""Clients that speak the real protocol through the simulated network, and what they saw."""
