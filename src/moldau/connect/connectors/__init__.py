"""Connectors in the box, one package each."""
