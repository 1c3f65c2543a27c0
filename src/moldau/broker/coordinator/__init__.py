"""Coordinators: state kept in internal topics, decided purely, served after commit."""
