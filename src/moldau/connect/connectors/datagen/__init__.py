"""Datagen: made-up records for demonstrations and tests."""
