"""The `listeners` of a service: `http://host:port,https://host:port`, as in Confluent's services.

`NAME://host:port` is allowed too if `listener.protocol.map` says what NAME is. A host that is left
out is the loopback address: who wants every interface writes 0.0.0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from moldau.config.addresses import parse_host_port
from moldau.config.errors import ConfigError

__all__ = ["LOOPBACK", "Listener", "parse_listeners"]

LOOPBACK: Final = "127.0.0.1"
_KEY: Final = "listeners"


@dataclass(frozen=True, slots=True)
class Listener:
    """`name` is the part before `://` in lower case: http, https or a name of the map."""

    name: str
    secure: bool
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


def parse_listeners(
    texts: Sequence[str], *, default_port: int, protocols: Sequence[str] = ()
) -> tuple[Listener, ...]:
    """Without texts, http on the loopback address. Raises ConfigError."""
    if not texts:
        return (Listener("http", False, LOOPBACK, default_port),)
    known = {"http": "http", "https": "https", **_protocol_map(protocols)}
    found = []
    for text in texts:
        name, separator, address = text.strip().partition("://")
        name = name.lower()
        if not separator:
            raise _invalid(text)
        if name not in known:
            raise ConfigError.invalid(
                _KEY, text, f"{name} is neither http nor https nor in listener.protocol.map"
            )
        address = address.rstrip("/")
        parsed = parse_host_port(f"{LOOPBACK}{address}" if address.startswith(":") else address)
        if parsed is None:
            raise _invalid(text)
        found.append(Listener(name, known[name] == "https", parsed.host, parsed.port))
    ports = [(each.host, each.port) for each in found if each.port]
    if len(set(ports)) < len(ports):
        raise ConfigError.invalid(_KEY, ",".join(texts), "two listeners have the same port")
    return tuple(found)


def _protocol_map(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, separator, protocol = text.strip().lower().partition(":")
        if not separator or protocol not in ("http", "https") or name in ("http", "https"):
            raise ConfigError.invalid(
                "listener.protocol.map", text, "use NAME:http or NAME:https, with a NAME of its own"
            )
        found[name] = protocol
    return found


def _invalid(text: str) -> ConfigError:
    return ConfigError.invalid(_KEY, text, "use http://host:port or https://host:port")
