"""Configuration keys, their types, defaults and checks."""
