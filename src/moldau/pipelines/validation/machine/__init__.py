"""Pure: what the texts of a definition say. See `validation/__init__.py`."""
