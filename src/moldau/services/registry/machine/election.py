"""Which instance is the primary: what members of the group send and get, as JSON.

The group's leader (one of the members, chosen by the broker) decides for all: the eligible instance
with the smallest URL, or, if `leader.election.sticky` is on, the one that is the primary already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["PROTOCOL_NAME", "PROTOCOL_TYPE", "Assignment", "Identity", "assign"]

PROTOCOL_TYPE: Final = "sr"
PROTOCOL_NAME: Final = "v0"
NO_ERROR: Final = 0
DUPLICATE_URLS: Final = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """An instance, as the others reach it."""

    host: str
    port: int
    eligible: bool
    scheme: str = "http"
    is_leader: bool = False

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def same_instance(self, other: Identity | None) -> bool:
        return other is not None and self.url == other.url

    def to_json(self) -> dict[str, object]:
        return {
            "version": 1,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "leader": self.is_leader,
        }

    def encode(self) -> bytes:
        return json.dumps(self.to_json(), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Identity:
        """Raises ValueError for what no instance has sent."""
        return _identity(json.loads(data))


@dataclass(frozen=True, slots=True)
class Assignment:
    """The primary, None if no instance is eligible."""

    member_id: str | None
    primary: Identity | None
    error: int = NO_ERROR

    @property
    def has_duplicate_urls(self) -> bool:
        return self.error == DUPLICATE_URLS

    def encode(self) -> bytes:
        found: dict[str, object] = {"version": 1, "error": self.error}
        if self.member_id is not None and self.primary is not None:
            found["master"] = self.member_id
            found["master_identity"] = self.primary.to_json()
        return json.dumps(found, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Assignment:
        """Raises ValueError for what no instance has sent."""
        found = json.loads(data)
        if not isinstance(found, dict):
            raise ValueError("an assignment must be a JSON object")
        primary = found.get("master_identity")
        return cls(
            found.get("master"),
            None if primary is None else _identity(primary),
            int(found.get("error") or NO_ERROR),
        )


def assign(members: Mapping[str, Identity], *, sticky: bool) -> Assignment:
    """What the leader of the group sends to every member."""
    eligible = {name: each for name, each in members.items() if each.eligible}
    leading = [name for name, each in eligible.items() if each.is_leader]
    urls = {each.url for each in members.values()}
    error = NO_ERROR if len(urls) == len(members) else DUPLICATE_URLS
    if not eligible:
        return Assignment(None, None, error)
    if sticky and len(leading) == 1:
        chosen = leading[0]
    else:
        chosen = min(eligible, key=lambda name: (eligible[name].url, name))
    return Assignment(chosen, eligible[chosen], error)


def _identity(found: object) -> Identity:
    if not isinstance(found, dict):
        raise ValueError("an identity must be a JSON object")
    try:
        return Identity(
            str(found["host"]),
            int(found["port"]),
            bool(found["master_eligibility"]),
            str(found.get("scheme") or "http"),
            bool(found.get("leader")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"an identity lacks a field: {error}") from error
