"""ssl.cipher.suites: the names of the standard, which Java uses, as OpenSSL spells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["TLS_1_3_SUITES", "CipherChoice", "choose_ciphers"]

#: What OpenSSL offers for TLS 1.3 unless it is configured otherwise.
TLS_1_3_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)


class CipherChoice(NamedTuple):
    """Which suites are allowed for each version of TLS; none: the version is off."""

    tls_1_2: tuple[str, ...]
    """By OpenSSL's names."""
    tls_1_3: tuple[str, ...]


def choose_ciphers(suites: Sequence[str]) -> CipherChoice:
    newer = tuple(name for name in suites if name in TLS_1_3_SUITES)
    older = tuple(_openssl_name(name) for name in suites if name not in TLS_1_3_SUITES)
    return CipherChoice(older, newer)


def _openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384."""
    exchange, separator, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        # Perhaps OpenSSL's own name.
        return name
    cipher = cipher.replace("AES_128_", "AES128_").replace("AES_256_", "AES256_")
    cipher = cipher.replace("_CBC_", "_").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    prefix = "" if exchange == "RSA" else f"{exchange}_"
    return f"{prefix}{cipher}".replace("_", "-")
