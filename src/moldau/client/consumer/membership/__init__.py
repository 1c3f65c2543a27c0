"""How a consumer is a member of its group, by either protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.consumer.membership_interface import GroupHost, Membership
from moldau.client.errors import ConfigError

__all__ = ["check_settings", "make_membership"]


def check_settings(values: Mapping[str, Any], assignors: Iterable[Any]) -> None:
    """Raises ConfigError for settings that no membership could be made with."""
    if _is_consumer_protocol(values):
        return
    session_timeout_ms = values["session.timeout.ms"]
    if values["heartbeat.interval.ms"] >= session_timeout_ms:
        raise ConfigError.invalid(
            "heartbeat.interval.ms",
            values["heartbeat.interval.ms"],
            f"must be lower than session.timeout.ms ({session_timeout_ms})",
        )
    if _maker(assignors) is not None:
        return
    # Most consumers of tools and tests have no group, and need no assignors before.
    from moldau.client.consumer.assignors.assignor import common_protocol
    from moldau.client.consumer.assignors.resolve import resolve_assignors

    resolved = resolve_assignors(assignors, values)
    if resolved:
        common_protocol(resolved)


def make_membership(host: GroupHost) -> Membership:
    """By `group.protocol`. Raises ConfigError as `check_settings` does."""
    if _is_consumer_protocol(host.values):
        import os

        from moldau.client.consumer.membership.consumer_shell import ConsumerMembership
        from moldau.wire.uuids import random_uuid, uuid_to_text

        return ConsumerMembership(host, uuid_to_text(random_uuid(os.urandom(16))))
    maker = _maker(host.assignors)
    if maker is not None:
        from moldau.client.consumer.membership.streams_shell import StreamsMembership

        membership: Membership = maker(host, StreamsMembership)
        return membership
    from moldau.client.consumer.membership.classic_shell import ClassicMembership

    check_settings(host.values, ())
    return ClassicMembership(host)


def _maker(assignors: Iterable[Any]) -> Any:
    """What makes another kind of membership, in place of an assignor."""
    return getattr(next(iter(assignors), None), "make_membership", None)


def _is_consumer_protocol(values: Mapping[str, Any]) -> bool:
    return bool(values["group.protocol"].lower() == "consumer")
