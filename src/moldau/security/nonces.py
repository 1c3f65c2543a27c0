"""Fresh nonces for SASL exchanges."""

from __future__ import annotations

import secrets

__all__ = ["new_nonce"]


def new_nonce() -> str:
    """At least as unpredictable as Kafka's, which has 130 bits."""
    return secrets.token_hex(20)
