"""How a consumer is a member of its group, by either protocol."""

from __future__ import annotations

from moldau.client.consumer.membership_interface import GroupHost, Membership

__all__ = ["make_membership"]


def make_membership(host: GroupHost) -> Membership:
    """By `group.protocol`. Raises ConfigError for settings that do not fit each other."""
    if host.values["group.protocol"].lower() == "consumer":
        import os

        from moldau.client.consumer.membership.consumer_shell import ConsumerMembership
        from moldau.wire.uuids import random_uuid, uuid_to_text

        return ConsumerMembership(host, uuid_to_text(random_uuid(os.urandom(16))))
    from moldau.client.consumer.membership.classic_shell import ClassicMembership

    return ClassicMembership(host)
