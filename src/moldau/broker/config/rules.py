"""Validators that only broker, topic and group keys need."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from moldau.config.addresses import parse_host_port
from moldau.config.durations import parse_duration_ms
from moldau.config.errors import ConfigError
from moldau.config.validators import Validator

__all__ = ["RULES", "Voter", "parse_voters"]


class Voter(NamedTuple):
    """One entry of controller.quorum.voters."""

    node_id: int
    host: str
    port: int


_REPLICA = re.compile(r"[0-9]+:[0-9]+")


def parse_voters(key: str, entries: tuple[str, ...]) -> tuple[Voter, ...]:
    voters: dict[int, Voter] = {}
    for entry in entries:
        id_text, _, address = entry.partition("@")
        host_port = parse_host_port(address)
        if host_port is None or not id_text.isascii() or not id_text.isdigit():
            raise ConfigError.invalid(
                key, ",".join(entries), "Each entry should be in the form {id}@{host}:{port}"
            )
        node_id = int(id_text)
        if host_port.host == "0.0.0.0":
            raise ConfigError.invalid(key, entry, "Host string (0.0.0.0) is not routeable")
        if node_id in voters:
            raise ConfigError.invalid(key, ",".join(entries), f"node id {node_id} appears twice")
        voters[node_id] = Voter(node_id, *host_port)
    return tuple(voters.values())


class _Voters:
    allowed = "non-empty list"

    def check(self, key: str, value: Any) -> None:
        parse_voters(key, value)


class _HostPorts:
    allowed = "non-empty list"

    def check(self, key: str, value: Any) -> None:
        for entry in value:
            if parse_host_port(entry) is None:
                raise ConfigError.invalid(
                    key, entry, "Each entry should be in the form {host}:{port}"
                )


class _ThrottledReplicas:
    allowed = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def check(self, key: str, value: Any) -> None:
        if value == ("*",) or all(_REPLICA.fullmatch(entry) for entry in value):
            return
        raise ConfigError.invalid(
            key, ",".join(value), f"must be the literal '*' or a list of replicas: {self.allowed}"
        )


class _OffsetReset:
    allowed = "[latest, earliest, by_duration:PnDTnHnMn.nS]"

    def check(self, key: str, value: Any) -> None:
        if value in ("latest", "earliest"):
            return
        prefix, _, duration = value.partition(":")
        if prefix == "by_duration" and parse_duration_ms(duration) is not None:
            return
        raise ConfigError.invalid(key, value, f"must be one of {self.allowed}")


RULES: dict[str, Validator] = {
    "voters": _Voters(),
    "hostports": _HostPorts(),
    "replicas": _ThrottledReplicas(),
    "offset_reset": _OffsetReset(),
}
