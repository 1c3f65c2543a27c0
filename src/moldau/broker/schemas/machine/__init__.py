"""Decides which records are refused."""
