"""Servers that keep their state in topics: one package per service."""
