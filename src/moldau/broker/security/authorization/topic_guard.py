"""What Produce and Fetch ask, which know their topics only once they have decoded the frame."""

from __future__ import annotations

from collections.abc import Callable
from logging import DEBUG
from typing import Final, TypeAlias
from uuid import UUID

from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.network.context import AuditTexts, RequestContext
from moldau.broker.security.authorization.authorization import Authorization
from moldau.broker.security.authorization.permissions import TopicNames
from moldau.wire.acls import CLUSTER_NAME, AclOperation, ResourceType

#: A topic by name, or from some version on by its id.
TopicKey: TypeAlias = str | bytes

#: Whether the sender of a request may not write to, or read, a topic.
DeniesTopic: TypeAlias = Callable[[RequestContext, TopicKey], bool]

NAMES_MAX: Final = 100_000
#: How many permissions a connection remembers. A full memory is emptied: an entry costs about 100
#: bytes, and one with the text of its audit event 500.
GRANTED_MAX: Final = 2_000


class TopicGuard:
    """Asked for each topic of a request that is not in its connection's grants.

    What is allowed is remembered there until ACLs change: after that a permission costs one
    look-up, however many ACLs there are. What is denied is never remembered, nor that nobody has a
    topic id, nor anything while DEBUG logs what is allowed.
    """

    def __init__(self, authorization: Authorization, topics: TopicNames) -> None:
        self._authorization = authorization
        self._allows = authorization.allows
        self._logs = authorization.logs
        self._name_of = topics.name_of
        # An id never gets another name; a full memory is emptied.
        self._names: dict[bytes, str] = {}
        # Chosen once: this is asked for every Produce.
        audit_again = authorization.audit_again
        self.denies_write: DeniesTopic = self._denies_write
        self._denies_topic: DeniesTopic = self._denies_read
        self._audits = audit_again is not None
        if audit_again is not None:
            self._audit_again = audit_again
            self.denies_write = self._denies_audited_write
            self._denies_topic = self._denies_audited_read

    def denies_transaction(self, context: RequestContext, transactional_id: str) -> bool:
        return not self._allows(
            context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        )

    def denies_read(self, context: RequestContext) -> DeniesTopic:
        """To be asked for each partition of one Fetch that the grants do not cover, and again when
        it has waited. The audit log gets what is allowed once for each topic of the Fetch."""
        if self._audits:
            # A connection has one Fetch at a time.
            context.connection.grants.reads.clear()
        return self._denies_topic

    def denies_follower(self, context: RequestContext) -> bool:
        """A follower needs CLUSTER_ACTION, and no permission on topics."""
        return not self._allows(
            context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def _denies_write(self, context: RequestContext, key: TopicKey) -> bool:
        denied = self._ask_write(context, key)
        if not denied:
            self._grant(context, context.connection.grants.writes, key)
        return denied

    def _denies_read(self, context: RequestContext, key: TopicKey) -> bool:
        denied = self._ask_read(context, key)
        if not denied:
            self._grant(context, context.connection.grants.reads, key)
        return denied

    # Where the audit log gets what is allowed.

    def _denies_audited_write(self, context: RequestContext, key: TopicKey) -> bool:
        grants = context.connection.grants
        text = grants.write_texts.get(key)
        if text is None or context.client_id != grants.client_id:
            denied = self._ask_write(context, key)
            if not denied:
                self._keep_text(context, grants.write_texts, key, AclOperation.WRITE)
            return denied
        if text:
            self._audit_again(text)
        return False

    def _denies_audited_read(self, context: RequestContext, key: TopicKey) -> bool:
        grants = context.connection.grants
        text = grants.read_texts.get(key)
        if text is None or context.client_id != grants.client_id:
            denied = self._ask_read(context, key)
            if not denied:
                self._keep_text(context, grants.read_texts, key, AclOperation.READ)
                self._grant(context, grants.reads, key)
            return denied
        grants.reads.add(key)
        if text:
            self._audit_again(text)
        return False

    def _grant(self, context: RequestContext, granted: set[TopicKey], key: TopicKey) -> None:
        if not self._is_remembered(key):
            return
        if len(granted) >= GRANTED_MAX:
            granted.clear()
        granted.add(key)
        self._authorization.remember_in(context.connection)

    def _keep_text(
        self, context: RequestContext, texts: AuditTexts, key: TopicKey, operation: AclOperation
    ) -> None:
        name = self._name(key)
        if name is None or not self._is_remembered(key):
            return
        grants = context.connection.grants
        if grants.client_id != context.client_id:
            # The text has the client id.
            grants.read_texts.clear()
            grants.write_texts.clear()
            grants.client_id = context.client_id
        if len(texts) >= GRANTED_MAX:
            texts.clear()
        texts[key] = self._authorization.audit_text(context, operation, ResourceType.TOPIC, name)
        self._authorization.remember_in(context.connection)

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

    def _is_remembered(self, key: TopicKey) -> bool:
        # A write to the audit topic is no permission on a topic, and has another audit event.
        return (
            self._authorization.remembers
            and self._name(key) not in (None, AUDIT_TOPIC)
            and not self._logs(DEBUG)
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
