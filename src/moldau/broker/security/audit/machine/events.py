"""An audit event as a line of JSON: who, from where, what, on what, with which result."""

from __future__ import annotations

from enum import Enum
from json import dumps
from typing import NamedTuple


class Kind(Enum):
    """What happened; the names in `moldau.audit.events`."""

    AUTHENTICATED = "authenticated"
    REJECTED = "rejected"
    ALLOWED = "allowed"
    DENIED = "denied"


class Event(NamedTuple):
    """Empty fields are left out of the line."""

    kind: Kind
    principal: str
    host: str
    listener: str
    #: The SASL mechanism, or SSL, or PLAINTEXT.
    mechanism: str = ""
    #: Why a client was rejected; never what it sent.
    reason: str = ""
    client_id: str = ""
    api: str = ""
    operation: str = ""
    resource_type: str = ""
    resource: str = ""


def content(event: Event, node_id: int) -> str:
    """A line without its beginning, the time: the same for every event like this one."""
    parts = [f'"node":{node_id},"event":"{event.kind.value}"']
    for name, value in zip(_NAMES, event[1:], strict=True):
        if value:
            parts.append(f',"{name}":{dumps(value)}')
    parts.append("}\n")
    return "".join(parts)


def dropped_line(now_ms: int, node_id: int, count: int) -> str:
    """How many events are missing since the last line."""
    return f'{{"time":{now_ms},"node":{node_id},"event":"dropped","count":{count}}}'


_NAMES = (
    "principal",
    "host",
    "listener",
    "mechanism",
    "reason",
    "clientId",
    "api",
    "operation",
    "resourceType",
    "resource",
)
