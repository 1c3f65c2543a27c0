"""What Produce and Fetch ask, which know their topics only once they have decoded the frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from logging import DEBUG
from typing import Final, TypeAlias
from uuid import UUID

from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.authorization import Authorization, Granted
from moldau.broker.security.authorization.permissions import TopicNames
from moldau.wire.acls import CLUSTER_NAME, AclOperation, ResourceType

#: A topic by name, or from some version on by its id.
TopicKey: TypeAlias = str | bytes

#: Whether the sender of a request may not write to, or read, a topic.
DeniesTopic: TypeAlias = Callable[[RequestContext, TopicKey], bool]

NAMES_MAX: Final = 100_000
#: How many permissions are remembered. A full memory is emptied: entries cost about 300 bytes.
GRANTED_MAX: Final = 100_000


class TopicGuard:
    """Asked for each topic of a request.

    What is allowed is remembered until ACLs change, with the text of its audit event: after that,
    a permission costs one look-up, however many ACLs there are. What is denied is never remembered
    here, nor that nobody has a topic id.
    """

    def __init__(self, authorization: Authorization, topics: TopicNames) -> None:
        self._authorization = authorization
        self._allows = authorization.allows
        self._logs = authorization.logs
        self._audit_again = authorization.audit_again
        self._name_of = topics.name_of
        # An id never gets another name; a full memory is emptied.
        self._names: dict[bytes, str] = {}
        self._writes = authorization.memory()
        self._reads = authorization.memory()
        # Chosen once: this is asked for every Produce.
        self.denies_write: DeniesTopic = (
            self._denies_write if self._audit_again is None else self._denies_audited_write
        )

    def denies_transaction(self, context: RequestContext, transactional_id: str) -> bool:
        return not self._allows(
            context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        )

    def denies_read(self) -> DeniesTopic:
        """To be asked for each partition of one Fetch, and again when it has waited. The audit log
        gets what is allowed once for each topic."""
        if self._audit_again is None:
            return self._denies_read
        return partial(self._denies_audited_read, set())

    def denies_follower(self, context: RequestContext) -> bool:
        """A follower needs CLUSTER_ACTION, and no permission on topics."""
        return not self._allows(
            context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def _denies_write(self, context: RequestContext, key: TopicKey) -> bool:
        known = (context.principal, context.client_host, key)
        if known in self._writes and not self._logs(DEBUG):
            return False
        denied = self._ask_write(context, key)
        if not denied:
            self._remember(self._writes, known, key)
        return denied

    def _denies_read(self, context: RequestContext, key: TopicKey) -> bool:
        known = (context.principal, context.client_host, key)
        if known in self._reads and not self._logs(DEBUG):
            return False
        denied = self._ask_read(context, key)
        if not denied:
            self._remember(self._reads, known, key)
        return denied

    # Where the audit log gets what is allowed: its text differs by listener and client id, too.

    def _denies_audited_write(self, context: RequestContext, key: TopicKey) -> bool:
        known = (
            context.principal, context.client_host, key, context.client_id, context.listener_name
        )  # fmt: skip
        text = self._writes.get(known)
        if text is None or self._logs(DEBUG):
            denied = self._ask_write(context, key)
            if not denied:
                self._remember(self._writes, known, key, context, AclOperation.WRITE)
            return denied
        if text and self._audit_again is not None:
            self._audit_again(text)
        return False

    def _denies_audited_read(
        self, audited: set[TopicKey], context: RequestContext, key: TopicKey
    ) -> bool:
        if key in audited:
            return self._denies_read(context, key)
        known = (
            context.principal, context.client_host, key, context.client_id, context.listener_name
        )  # fmt: skip
        text = self._reads.get(known)
        if text is None or self._logs(DEBUG):
            denied = self._ask_read(context, key)
            if not denied:
                self._remember(self._reads, known, key, context, AclOperation.READ)
                self._remember(self._reads, known[:3], key)
                audited.add(key)
            return denied
        audited.add(key)
        if text and self._audit_again is not None:
            self._audit_again(text)
        return False

    # Asking the authorizer.

    def _ask_write(self, context: RequestContext, key: TopicKey) -> bool:
        name = self._name(key)
        if name == AUDIT_TOPIC:
            # By nodes only, as nobody may forge audit events.
            return self.denies_follower(context)
        # That nobody has a topic id may be said to everybody.
        return name is not None and not self._allows(
            context, AclOperation.WRITE, ResourceType.TOPIC, name
        )

    def _ask_read(self, context: RequestContext, key: TopicKey) -> bool:
        name = self._name(key)
        return name is not None and not self._allows(
            context, AclOperation.READ, ResourceType.TOPIC, name
        )

    def _remember(
        self,
        memory: Granted,
        known: tuple[object, ...],
        key: TopicKey,
        context: RequestContext | None = None,
        operation: AclOperation = AclOperation.UNKNOWN,
    ) -> None:
        """With a `context`, the audit event is remembered too."""
        name = self._name(key)
        # A write to the audit topic is no permission on a topic, and has another audit event.
        if not self._authorization.remembers or name is None or name == AUDIT_TOPIC:
            return
        if len(memory) >= GRANTED_MAX:
            memory.clear()
        memory[known] = (
            ""
            if context is None
            else self._authorization.audit_text(context, operation, ResourceType.TOPIC, name)
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
