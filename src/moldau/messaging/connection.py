"""ConnectionFactory and Connection: where messaging begins."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from moldau.client import KafkaError
from moldau.messaging.context import Context
from moldau.messaging.feed import Receiver, ShareFeed
from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.errors import (
    IllegalStateError,
    InvalidClientIdError,
    MessagingError,
)
from moldau.messaging.machine.groups import ends_with_its_consumers
from moldau.messaging.machine.settings import MessagingSettings
from moldau.messaging.session import AcknowledgeMode, Session
from moldau.security.machine.jaas import PASSWORD_MECHANISMS, jaas_line

__all__ = ["Connection", "ConnectionFactory"]


class ConnectionFactory:
    """Makes connections to one cluster.

    `settings` are those of Kafka's clients, by their names; keyword arguments are messaging's own.

    >>> factory = ConnectionFactory({"bootstrap.servers": "127.0.0.1:9092"})
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        bootstrap_servers: str | None = None,
        allow_pickle: bool = False,
        max_deliveries: int = 5,
        dead_letter_suffix: str = ".dlq",
        prefetch: int = 50,
    ) -> None:
        clients = {name: str(value) for name, value in (settings or {}).items()}
        if bootstrap_servers is not None:
            clients["bootstrap.servers"] = bootstrap_servers
        self._settings = MessagingSettings(
            clients=clients,
            allow_pickle=allow_pickle,
            max_deliveries=max_deliveries,
            dead_letter_suffix=dead_letter_suffix,
            prefetch=prefetch,
        )

    def create_connection(
        self, user: str | None = None, password: str | None = None, *, client_id: str | None = None
    ) -> Connection:
        """A connection, stopped; with a user it logs in as that user of the cluster.

        >>> connection = factory.create_connection(client_id="till-3")
        """
        clients = dict(self._settings.clients)
        if user is not None:
            mechanism = clients.get("sasl.mechanism", "SCRAM-SHA-512").upper()
            if mechanism not in PASSWORD_MECHANISMS:
                raise MessagingError(f"{mechanism} has no passwords: set sasl.mechanism to another")
            clients.setdefault("security.protocol", "SASL_PLAINTEXT")
            clients["sasl.mechanism"] = mechanism
            login = {"username": user, "password": password or ""}
            clients["sasl.jaas.config"] = jaas_line(mechanism, login)
        return Connection(Context(self._settings, clients), client_id)


class Connection:
    """Receives nothing until `start`. Threads may share it; a session is for one of them."""

    def __init__(self, context: Context, client_id: str | None) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._sessions: list[Session] = []
        self._feeds: dict[str, ShareFeed] = {}
        self._temporary: set[str] = set()
        self._used = False
        if client_id is not None:
            self._set_client_id(client_id)

    @property
    def client_id(self) -> str | None:
        return self._context.client_id

    @client_id.setter
    def client_id(self, client_id: str) -> None:
        """Only once, and before anything else."""
        if self._used or self._context.client_id is not None:
            raise IllegalStateError("the client ID is set once, before anything else")
        self._set_client_id(client_id)

    def _set_client_id(self, client_id: str) -> None:
        if not client_id or ":" in client_id:
            raise InvalidClientIdError(f"{client_id!r} is empty or has a colon")
        self._context.client_id = client_id

    @property
    def exception_listener(self) -> Callable[[Exception], None] | None:
        """Called with errors that no call waits for, in any thread."""
        return self._context.on_error

    @exception_listener.setter
    def exception_listener(self, listener: Callable[[Exception], None] | None) -> None:
        self._context.on_error = listener

    def create_session(
        self, mode: AcknowledgeMode | str = AcknowledgeMode.AUTO, *, transacted: bool = False
    ) -> Session:
        """>>> session = connection.create_session("client")"""
        self._check_open()
        self._used = True
        chosen = AcknowledgeMode.TRANSACTED if transacted else AcknowledgeMode(mode)
        session = Session(self._context, self, chosen)
        with self._lock:
            self._sessions.append(session)
        return session

    def start(self) -> None:
        """Begin, or go on, to deliver messages."""
        self._check_open()
        self._used = True
        self._context.started.set()
        self._notify()

    def stop(self) -> None:
        """Deliver nothing until the next `start`. Messages can be sent."""
        self._check_open()
        self._context.started.clear()

    def _notify(self) -> None:
        with self._lock:
            feeds = list(self._feeds.values())
        for feed in feeds:
            with feed.changed:
                feed.changed.notify_all()

    def close(self) -> None:
        """Close all sessions and delete temporary destinations."""
        if self._context.closed:
            return
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()
        self._context.closed = True
        for name in list(self._temporary):
            try:
                self.delete_temporary(name)
            except MessagingError as error:
                self._context.report(error)
        self._context.close()

    def _check_open(self) -> None:
        if self._context.closed:
            raise IllegalStateError("the connection is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Called by sessions.

    def share_feed(
        self, destination: Destination, group: str, receiver: Receiver, *, from_start: bool
    ) -> ShareFeed:
        """The feed of a group, with one more receiver."""
        with self._lock:
            feed = self._feeds.get(group)
            if feed is None:
                self._context.prepare_group(group, destination.name, from_start=from_start)
                feed = ShareFeed(self._context, destination, group)
                self._feeds[group] = feed
                feed.start()
            feed.add(receiver)
            return feed

    def release_feed(self, feed: ShareFeed, receiver: Receiver) -> None:
        feed.remove(receiver)
        with self._lock:
            if feed.receivers:
                return
            self._feeds.pop(feed.group, None)
        feed.flush(5)
        feed.close()
        if ends_with_its_consumers(feed.group):
            # Refused as long as somebody else shares it. A program that is killed leaves it behind.
            with suppress(KafkaError):
                self._context.admin.delete_share_groups([feed.group], check=False)

    def create_temporary(self, prefix: str) -> str:
        name = f"{prefix}-{uuid.uuid4().hex}"
        self._context.ensure_topic(name)
        self._temporary.add(name)
        return name

    def delete_temporary(self, name: str) -> None:
        self._temporary.discard(name)
        try:
            self._context.admin.delete_topics([name])
        except KafkaError as error:
            raise MessagingError(f"{name} was not deleted: {error}") from error

    def forget_session(self, session: Session) -> None:
        with self._lock:
            if session in self._sessions:
                self._sessions.remove(session)
