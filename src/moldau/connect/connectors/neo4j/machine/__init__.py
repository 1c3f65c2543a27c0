"""Queries made of settings."""
