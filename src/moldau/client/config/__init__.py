"""Kafka's client keys and what users set them to."""

from moldau.client.config.admin_keys import ADMIN_KEYS
from moldau.client.config.consumer_keys import CONSUMER_KEYS
from moldau.client.config.producer_keys import PRODUCER_KEYS
from moldau.client.config.settings import (
    gather,
    keys_of,
    known_keys,
    parse_addresses,
    parse_settings,
)

__all__ = [
    "ADMIN_KEYS",
    "CONSUMER_KEYS",
    "PRODUCER_KEYS",
    "gather",
    "keys_of",
    "known_keys",
    "parse_addresses",
    "parse_settings",
]
