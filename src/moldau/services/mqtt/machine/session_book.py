"""SessionBook: all sessions, as the records of the sessions topic say.

Every proxy reads the topic from its beginning, so all know the same. A session has a version: an
epoch and the proxy that owns it. Keys name the version:

    ["s", client, epoch, owner]   the session: subscriptions, expiry, will
    ["f", client, epoch, owner]   its flow: positions, messages in flight, in both directions
    ["p", owner]                  when a proxy was last alive

A proxy takes a session over by a claim, an "s" record with a higher version; the session goes on
with what it was. From then on records of lower versions are void wherever they stand in the topic,
which fences a proxy that has not noticed yet. Because keys contain the version, compaction never
keeps a void record in place of a valid one. Null ends a session.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.services.mqtt.machine.packets import SubscribeRequest, Will

__all__ = [
    "Change",
    "SessionBook",
    "StoredSession",
    "Version",
    "proxy_key",
    "session_key",
    "subscription_values",
    "will_value",
]


class Version(NamedTuple):
    epoch: int
    owner: str


@dataclass(slots=True)
class StoredSession:
    """`at_ms` is when it was last connected, if it is not now."""

    client_id: str
    version: Version
    user: str = ""
    connected: bool = False
    expiry_s: int = 0
    at_ms: int = 0
    subscriptions: list[tuple[SubscribeRequest, int]] = field(default_factory=list)
    will: Will | None = None
    will_delay_s: int = 0
    flow: Mapping[str, Any] = field(default_factory=dict)
    old: set[Version] = field(default_factory=set)
    """Versions that still have records, which are of no use any more."""


class Change(NamedTuple):
    """What a record has changed: the session has another version now, None if it is over."""

    client_id: str
    version: Version | None


def session_key(kind: str, client_id: str, version: Version) -> bytes:
    return json.dumps([kind, client_id, version.epoch, version.owner]).encode()


def proxy_key(owner: str) -> bytes:
    return json.dumps(["p", owner]).encode()


class SessionBook:
    """See the module. Only `replay` changes it."""

    def __init__(self) -> None:
        self._sessions: dict[str, StoredSession] = {}
        self.proxies: dict[str, int] = {}
        """When each proxy was last alive, in ms."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, client_id: str) -> StoredSession | None:
        return self._sessions.get(client_id)

    def __iter__(self) -> Iterator[StoredSession]:
        return iter(self._sessions.values())

    def replay(self, key: bytes | None, value: bytes | None) -> Change | None:
        """Raises ValueError for a record that is none of these."""
        try:
            parts = json.loads(key or b"")
            content = None if value is None else json.loads(value)
            if parts[0] == "p":
                self._replay_proxy(str(parts[1]), content)
                return None
            kind, client_id, epoch, owner = parts
            version = Version(int(epoch), str(owner))
            if kind == "f":
                self._replay_flow(str(client_id), version, content)
                return None
            if kind == "s":
                return self._replay_session(str(client_id), version, content)
        except (TypeError, KeyError, IndexError, AttributeError) as error:
            raise ValueError(f"the record with the key {key!r} is not a session's") from error
        raise ValueError(f"the record with the key {key!r} is not a session's")

    def _replay_proxy(self, owner: str, content: Any) -> None:
        if content is None:
            self.proxies.pop(owner, None)
        else:
            self.proxies[owner] = int(content["at"])

    def _replay_flow(self, client_id: str, version: Version, content: Any) -> None:
        found = self._sessions.get(client_id)
        if found is not None and found.version == version and content is not None:
            found.flow = content

    def _replay_session(self, client_id: str, version: Version, content: Any) -> Change | None:
        found = self._sessions.get(client_id)
        if content is None:
            if found is None:
                return None
            if found.version != version:
                found.old.discard(version)
                return None
            del self._sessions[client_id]
            return Change(client_id, None)
        if found is not None and version < found.version:
            found.old.add(version)
            return None
        if content.get("claim"):
            return self._replay_claim(found, client_id, version, content)
        stored = _read_session(client_id, version, content)
        changed = found is None or found.version != version
        if found is not None:
            stored.flow = found.flow
            stored.old = found.old | ({found.version} if found.version != version else set())
        self._sessions[client_id] = stored
        return Change(client_id, version) if changed else None

    def _replay_claim(
        self, found: StoredSession | None, client_id: str, version: Version, content: Any
    ) -> Change:
        stored = StoredSession(client_id, version, user=str(content["user"]), connected=True)
        if found is not None:
            stored.old = found.old | ({found.version} if found.version != version else set())
            if not content["clean"]:
                stored.subscriptions = found.subscriptions
                stored.flow = found.flow
                stored.expiry_s = found.expiry_s
                stored.at_ms = found.at_ms
        self._sessions[client_id] = stored
        return Change(client_id, version)


def _read_session(client_id: str, version: Version, content: Mapping[str, Any]) -> StoredSession:
    will = content.get("will")
    return StoredSession(
        client_id,
        version,
        user=str(content["user"]),
        connected=bool(content["connected"]),
        expiry_s=int(content["expiry"]),
        at_ms=int(content["at"]),
        subscriptions=[_read_subscription(each) for each in content["subs"]],
        will=None if will is None else _read_will(will),
        will_delay_s=int(content.get("will_delay", 0)),
    )


def subscription_values(request: SubscribeRequest, subscription_id: int) -> list[Any]:
    return [
        request.filter, request.qos, request.no_local, request.retain_as_published,
        request.retain_handling, subscription_id,
    ]  # fmt: skip


def _read_subscription(values: list[Any]) -> tuple[SubscribeRequest, int]:
    text, qos, no_local, as_published, handling, number = values
    return SubscribeRequest(text, qos, no_local, as_published, handling), number


def will_value(will: Will | None) -> Any:
    if will is None:
        return None
    return {
        "topic": will.topic,
        "payload": base64.b64encode(will.payload).decode(),
        "qos": will.qos,
        "retain": will.retain,
        "properties": [[number, _plain(value)] for number, value in will.properties.items()],
    }


def _plain(value: Any) -> Any:
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _read_will(value: Mapping[str, Any]) -> Will:
    properties = {}
    for number, each in value["properties"]:
        if isinstance(each, dict):
            each = base64.b64decode(each["b64"])
        elif isinstance(each, list):
            each = [(str(name), str(text)) for name, text in each]
        properties[int(number)] = each
    payload = base64.b64decode(value["payload"])
    return Will(value["topic"], payload, value["qos"], value["retain"], properties)
