"""Handlers of the REST interface, one module per family of paths."""
