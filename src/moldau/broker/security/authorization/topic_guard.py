"""What Produce and Fetch ask, which know their topics only once they have decoded the frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.authorization import Authorization
from moldau.broker.security.authorization.permissions import TopicNames
from moldau.wire.acls import CLUSTER_NAME, AclOperation, ResourceType

#: A topic by name, or from some version on by its id.
TopicKey: TypeAlias = str | bytes

NAMES_MAX: Final = 100_000


class TopicGuard:
    """Asked once per topic of a request; decisions are remembered by the authorizer."""

    def __init__(self, authorization: Authorization, topics: TopicNames) -> None:
        self._allows = authorization.allows
        self._name_of = topics.name_of
        # An id never gets another name; a full memory is emptied.
        self._names: dict[bytes, str] = {}

    def denies_write(self, context: RequestContext, key: TopicKey) -> bool:
        name = self._name(key)
        if name == AUDIT_TOPIC:
            # By nodes only, as nobody may forge audit events.
            return self.denies_follower(context)
        # That nobody has a topic id may be said to everybody.
        return name is not None and not self._allows(
            context, AclOperation.WRITE, ResourceType.TOPIC, name
        )

    def denies_transaction(self, context: RequestContext, transactional_id: str) -> bool:
        return not self._allows(
            context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        )

    def denied_reads(self, context: RequestContext) -> Callable[[TopicKey], bool]:
        """Whether the sender of this Fetch may not read a topic."""
        return partial(self._denies_read, context)

    def denies_follower(self, context: RequestContext) -> bool:
        """A follower needs CLUSTER_ACTION, and no permission on topics."""
        return not self._allows(
            context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def _denies_read(self, context: RequestContext, key: TopicKey) -> bool:
        name = self._name(key)
        return name is not None and not self._allows(
            context, AclOperation.READ, ResourceType.TOPIC, name
        )

    def _name(self, key: TopicKey) -> str | None:
        return key if isinstance(key, str) else self._names.get(key) or self._find_name(key)

    def _find_name(self, key: bytes) -> str | None:
        name = self._name_of(UUID(bytes=key))
        if name is not None:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            self._names[key] = name
        return name
