"""Coordinators: state in internal topics, decided by pure machines, served after commit."""
