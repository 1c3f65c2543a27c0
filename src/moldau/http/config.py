"""HttpConfig: the settings of the HTTP side of a service, from keys named as in rest-utils."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.http.machine.listeners import Listener, parse_listeners
from moldau.http.machine.response_headers import HeaderRule, parse_header_rules

__all__ = ["HttpConfig"]

_HEADERS_KEY: Final = "response.http.headers.config"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """`settings` has all values by key, for what reads `ssl.*` and `authentication.*`."""

    listeners: tuple[Listener, ...]
    shutdown_graceful_ms: int
    request_timeout_ms: int
    idle_timeout_ms: int
    request_header_bytes_max: int
    request_body_bytes_max: int
    requests_in_flight_max: int
    request_bytes_in_flight_max: int
    connections_max: int
    compression: bool
    skip_paths: tuple[str, ...]
    header_rules: tuple[HeaderRule, ...]
    settings: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, default_port: int) -> HttpConfig:
        """From values that a table with `http_keys` has parsed. Raises ConfigError."""
        listeners = parse_listeners(
            values["listeners"],
            default_port=default_port,
            protocols=values["listener.protocol.map"],
        )
        methods = values["authentication.method"]
        if "NONE" in methods and len(methods) > 1:
            raise ConfigError.invalid(
                "authentication.method", ",".join(methods), "use NONE alone, or BASIC, BEARER"
            )
        headers = values[_HEADERS_KEY]
        try:
            rules = parse_header_rules(headers)
        except ValueError as error:
            raise ConfigError.invalid(_HEADERS_KEY, headers, str(error)) from None
        return cls(
            listeners=listeners,
            shutdown_graceful_ms=values["shutdown.graceful.ms"],
            request_timeout_ms=values["request.timeout.ms"],
            idle_timeout_ms=values["idle.timeout.ms"],
            request_header_bytes_max=values["max.request.header.size"],
            request_body_bytes_max=values["max.request.body.size"],
            requests_in_flight_max=values["requests.in.flight.max"],
            request_bytes_in_flight_max=values["request.bytes.in.flight.max"],
            connections_max=values["server.connection.limit"],
            compression=values["compression.enable"],
            skip_paths=tuple(values["authentication.skip.paths"]),
            header_rules=rules,
            settings=values,
        )

    @property
    def client_auth(self) -> str:
        """none, requested or required."""
        if self.settings["ssl.client.auth"]:
            return "required"
        found: str = self.settings["ssl.client.authentication"]
        return found.lower()
