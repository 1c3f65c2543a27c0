"""GroupMember: this instance in the group that elects the primary.

The group is a classic one of the protocol type `sr`, as Confluent's registry has it, so that both
can be in one. `ClassicGroup` sends the requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from moldau.client.classic_group import ClassicGroup, Generation
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.machine.election import (
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    assign,
)

__all__ = ["GroupMember"]

logger = logging.getLogger(__name__)

_DUPLICATES: Final = (
    "two instances have one URL: set host.name to a name by which the others reach each"
)


class GroupMember:
    """`on_primary` is called with the primary, and with None while none is known."""

    protocol_type = PROTOCOL_TYPE

    def __init__(
        self,
        config: RegistryConfig,
        identity: Identity,
        on_primary: Callable[[Identity | None], None],
    ) -> None:
        self._config = config
        self._identity = identity
        self._on_primary = on_primary
        self._group = ClassicGroup(
            config.group_id,
            self,
            settings=config.clients,
            client_id=f"{config.group_id}-member",
            session_ms=config.session_timeout_ms,
            heartbeat_ms=config.heartbeat_interval_ms,
            rebalance_ms=config.rebalance_timeout_ms,
        )
        self.node_count = 1
        """How many instances there are, if this one leads the group."""

    def start(self) -> None:
        self._group.start()

    async def stop(self) -> None:
        """Leave the group, so that another instance takes over at once."""
        await self._group.stop("the registry stops")

    # What the group asks.

    async def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [(PROTOCOL_NAME, self._identity.encode())]

    async def lead(self, members: Mapping[str, bytes], generation: Generation) -> dict[str, bytes]:
        known: dict[str, Identity] = {}
        for member_id, data in members.items():
            try:
                known[member_id] = Identity.decode(data)
            except ValueError as error:
                logger.error("member %s is left out: %s", member_id, error)
        self.node_count = len(known)
        chosen = assign(known, sticky=self._config.sticky).encode()
        return dict.fromkeys(members, chosen)

    async def take(self, assignment: bytes, generation: Generation) -> None:
        try:
            found = Assignment.decode(assignment)
        except ValueError as error:
            logger.error("group %s: no assignment: %s", self._config.group_id, error)
            self._on_primary(None)
            return
        if found.has_duplicate_urls:
            logger.error("group %s: %s", self._config.group_id, _DUPLICATES)
        primary = found.primary
        self._identity = replace(self._identity, is_leader=self._identity.same_instance(primary))
        self._on_primary(primary)

    async def on_session_ended(self) -> None:
        """The group may have chosen another primary."""
        self._on_primary(None)

    def on_failure(self) -> None:
        self._on_primary(None)
