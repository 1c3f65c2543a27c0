"""Adds the user's country to each click: a stream joined with a table.

Topics: `clicks` and `users` by user, both JSON; `enriched-clicks` gets the result.
"""

from __future__ import annotations

from typing import Any

from moldau.streams import StreamsBuilder, Topology


def enrich(click: dict[str, Any], user: dict[str, Any] | None) -> dict[str, Any]:
    return {**click, "country": "unknown" if user is None else user["country"]}


def build() -> Topology:
    builder = StreamsBuilder()
    users = builder.table("users", key_serde="string", value_serde="json", store="users")
    (
        builder.stream("clicks", key_serde="string", value_serde="json")
        .left_join(users, enrich)
        .to("enriched-clicks", key_serde="string", value_serde="json")
    )
    return builder.build()
