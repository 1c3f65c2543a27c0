"""The entities of `moldau configs`, and which types and names can be combined."""

from __future__ import annotations

import socket
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import NamedTuple

from moldau.cli.support.arguments import int32
from moldau.cli.support.machine.errors import Refused
from moldau.config.suggestions import did_you_mean

__all__ = ["Entities", "check_names", "check_types"]

TOPICS = "topics"
CLIENTS = "clients"
USERS = "users"
BROKERS = "brokers"
BROKER_LOGGERS = "broker-loggers"
IPS = "ips"
CLIENT_METRICS = "client-metrics"
GROUPS = "groups"

# In the order of Kafka's message.
_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
_WITH_DEFAULT = frozenset({USERS, CLIENTS, BROKERS, IPS})


class Entities(NamedTuple):
    """Types, and the names that were given for them; the name "" is the default entity."""

    types: Sequence[str]
    names: Sequence[str]


def check_types(entities: Entities) -> None:
    """Refuses the types that Kafka's tool refuses, with its messages."""
    types = entities.types
    twice = [kind for number, kind in enumerate(types) if kind in types[:number]]
    if twice:
        raise Refused(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in types:
        if kind not in _TYPES:
            raise Refused(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument."
                + did_you_mean(kind, _TYPES)
            )
    if not types:
        raise Refused("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise Refused(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def check_names(entities: Entities, *, alter: bool) -> None:
    """Refuses names that do not fit their types."""
    types, names = entities
    for name in filter(None, names):
        if (BROKERS in types or BROKER_LOGGERS in types) and not _is_number(name):
            raise Refused(
                f"The entity name for {types[0]} must be a valid integer broker id, but it is: "
                f"{name}"
            )
        if IPS in types and not _is_host(name):
            raise Refused(
                f"The entity name for {types[0]} must be a valid IP or resolvable host, but it is: "
                f"{name}"
            )
    if alter:
        _check_alter(entities)
    else:
        _check_describe(entities)


def _check_describe(entities: Entities) -> None:
    types, names = entities
    if "" in names and not _WITH_DEFAULT.intersection(types):
        raise Refused(
            f"--entity-default must not be specified with --describe of {','.join(types)}"
        )
    if BROKER_LOGGERS in types and not any(names):
        raise Refused(f"An entity name must be specified with --describe of {','.join(types)}")


def _check_alter(entities: Entities) -> None:
    types, names = entities
    if _WITH_DEFAULT.intersection(types):
        if not names:
            raise Refused(
                "An entity-name or default entity must be specified with --alter of users, "
                "clients, brokers or ips"
            )
    elif not any(names):
        raise Refused(f"An entity name must be specified with --alter of {','.join(types)}")
    if len(types) != len(names):
        raise Refused("An entity name must be specified for every entity type")


def _is_number(text: str) -> bool:
    try:
        int32(text)
    except ArgumentTypeError:
        return False
    return True


def _is_host(text: str) -> bool:
    try:
        socket.getaddrinfo(text, None)
    except (OSError, UnicodeError):
        return False
    return True
