"""Avro: its schemas as the registry keeps them, and its encoding."""
