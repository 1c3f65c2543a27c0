"""Host and port, as in every list of addresses that Kafka's keys hold."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["HostPort", "parse_host_port"]

_HOST_PORT = re.compile(r"(?:\[([0-9A-Za-z\-%._:]+)\]|([0-9A-Za-z\-%._]+)):([0-9]{1,5})")


class HostPort(NamedTuple):
    host: str
    port: int


def parse_host_port(text: str) -> HostPort | None:
    """`host:port` or `[ipv6]:port`; None when it is neither."""
    match = _HOST_PORT.fullmatch(text.strip())
    if match is None or int(match[3]) > 65535:
        return None
    return HostPort(match[1] or match[2], int(match[3]))
