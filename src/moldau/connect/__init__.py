"""Kafka Connect: moves data between Kafka and other systems by configuration.

`moldau.connect.api` is what a connector is written against; `README.md` shows how.
"""
