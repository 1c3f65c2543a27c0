"""Expressions with types: what type they have, and the Python code that computes them."""
