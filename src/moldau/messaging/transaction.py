"""The Kafka transactions of one transacted session."""

from __future__ import annotations

import uuid

from moldau.client import KafkaError, Producer
from moldau.messaging.context import Context

__all__ = ["SessionTransaction"]


class SessionTransaction:
    """Open from the first send to the next commit or abort."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._producer: Producer | None = None
        self._open = False
        #: Notes of messages that are acknowledged; the next transaction deletes them.
        self._superfluous: list[bytes] = []

    def producer(self) -> Producer:
        """For a message of the transaction, which begins with the first one."""
        if self._producer is None:
            self._producer = Producer(
                {
                    **self._context.client_settings,
                    "transactional.id": f"messaging-{uuid.uuid4().hex}",
                }
            )
            self._producer.init_transactions()
        if not self._open:
            self._producer.begin_transaction()
            self._open = True
        return self._producer

    def commit(self, notes: list[bytes]) -> bool:
        """Commit what was sent, with `notes` of what was received; False if nothing was sent.

        Raises KafkaError; then it is aborted.
        """
        if not self._open or self._producer is None:
            return False
        try:
            self._context.consumed.write(
                self._producer, consumed=notes, forgotten=self._superfluous
            )
            self._producer.commit_transaction()
        except KafkaError:
            self.abort()
            raise
        self._open = False
        self._superfluous = []
        return True

    def acknowledged(self, notes: list[bytes]) -> None:
        """The broker knows what these are about: it delivers none of it again."""
        self._superfluous += notes

    def abort(self) -> None:
        if not self._open or self._producer is None:
            return
        self._open = False
        try:
            self._producer.abort_transaction()
        except KafkaError as error:
            # The next producer has another id; the coordinator aborts what is open.
            self._context.report(error)
            self._producer = None

    def close(self) -> None:
        """A session that ends in order leaves no notes."""
        self.abort()
        if self._producer is None:
            return
        if self._superfluous:
            try:
                self.producer()
                self.commit([])
            except KafkaError as error:
                self._context.report(error)
        if self._producer is not None:
            self._producer.close(5)
