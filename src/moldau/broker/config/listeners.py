"""Listener addresses: `NAME://host:port`, parsed and resolved as Kafka does.

A host that is left out means "every interface" for `listeners`; what is advertised in its place is
decided once the machine's name is known, and port 0 once the socket is bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from moldau.config.errors import ConfigError

__all__ = [
    "LOOPBACK",
    "SECURITY_PROTOCOLS",
    "Listener",
    "parse_listeners",
    "parse_security_protocol_map",
    "resolve_listeners",
]

LOOPBACK = "127.0.0.1"
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

# As generous as Kafka: a host with any of these characters, brackets optional.
_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")


class Listener(NamedTuple):
    name: str
    host: str  # "" means every interface
    port: int  # 0 lets the system choose
    security_protocol: str

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"

    @property
    def is_wildcard(self) -> bool:
        return self.host in ("", "0.0.0.0", "::")

    @property
    def is_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def parse_security_protocol_map(key: str, text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...` with names in upper case."""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = (part.strip() for part in entry.rpartition(":"))
        if not separator or not name:
            raise ConfigError.invalid(key, text, "Each entry should be in the form NAME:PROTOCOL")
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError.invalid(
                key, text, f"{protocol} is not one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(
    key: str,
    entries: tuple[str, ...],
    protocols: Mapping[str, str],
    *,
    distinct_ports: bool = True,
) -> tuple[Listener, ...]:
    """Checked listeners. `protocols` maps every allowed name to its security protocol."""
    listeners = tuple(_parse_listener(key, entry, protocols) for entry in entries)
    names = [listener.name for listener in listeners]
    shown = ",".join(entries)
    if len(set(names)) != len(names):
        raise ConfigError.invalid(key, shown, "Each listener must have a different name")
    if distinct_ports:
        _check_ports(key, shown, listeners)
    return listeners


def listener_name(key: str, entry: str) -> str:
    name, separator, _ = entry.partition("://")
    if not separator:
        raise _malformed(key, entry)
    return name.upper()


def _malformed(key: str, entry: str) -> ConfigError:
    return ConfigError.invalid(
        key, entry, "Each listener should be in the form NAME://host:port, e.g. PLAINTEXT://:9092"
    )


def _parse_listener(key: str, entry: str, protocols: Mapping[str, str]) -> Listener:
    match = _LISTENER.fullmatch(entry)
    if match is None or not match[1]:
        raise _malformed(key, entry)
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not 0 <= port <= 65535:
        raise ConfigError.invalid(key, entry, "The port must be between 0 and 65535")
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError.invalid(
            key,
            entry,
            f"No security protocol defined for listener {name}. Use one of "
            f"{', '.join(protocols)} or add {name}:PLAINTEXT to listener.security.protocol.map",
        )
    return Listener(name, host, port, protocol)


def _check_ports(key: str, shown: str, listeners: tuple[Listener, ...]) -> None:
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port != 0:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        if len(sharing) == 1:
            continue
        # One IPv4 and one IPv6 address may share a port (KIP-797): they are different sockets.
        families = {_family(listener.host) for listener in sharing}
        if len(sharing) == 2 and families == {4, 6}:
            continue
        raise ConfigError.invalid(
            key,
            shown,
            f"Each listener must have a different port unless exactly one listener has an IPv4 "
            f"address and the other IPv6 address; {port} is used by {len(sharing)}",
        )


def _family(host: str) -> int:
    if ":" in host:
        return 6
    return 4 if _IPV4.fullmatch(host) else 0


def resolve_listeners(
    listeners: tuple[Listener, ...],
    *,
    canonical_host_name: str,
    bound_ports: Mapping[str, int] | None = None,
) -> tuple[Listener, ...]:
    """What clients get: an empty host becomes the machine's name, port 0 the bound port."""
    ports = bound_ports or {}
    return tuple(
        listener._replace(
            host=listener.host or canonical_host_name,
            port=listener.port or ports.get(listener.name, 0),
        )
        for listener in listeners
    )
