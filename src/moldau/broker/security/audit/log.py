"""AuditLog: writes audit events to a file or a topic, a few at a time.

Lines are collected and written together a moment later, since a system call for each would cost
more than the request. What a client does again within the same millisecond is counted, and becomes
lines of its own when they are written. The file is opened for appending with each write, so it can
be rotated by renaming it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Final

from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.security.audit.machine.events import Event, Kind, content
from moldau.broker.security.audit.machine.settings import AuditSettings
from moldau.clock import Alarm, Clock
from moldau.wire.acls import AclOperation
from moldau.wire.apis import API_BY_KEY, ApiKey

WRITE_AFTER_MS: Final = 100
#: As many lines are written at once, even before the time is over. More than 128 KB at once would
#: cost three times as much for each line: the C library maps fresh memory for it, page by page.
LINES_MAX: Final = 200
#: For so many kinds of operations the text is kept: a client does the same again and again.
TEXTS_MAX: Final = 10_000
_OWNER_ONLY: Final = 0o600

logger = logging.getLogger(__name__)


def append_to(path: str) -> Callable[[bytes], None]:
    """Appends to a file that only its owner reads: it has the names of users and topics."""

    def write(data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _OWNER_ONLY)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    return write


class AuditLog:
    def __init__(
        self,
        settings: AuditSettings,
        clock: Clock,
        *,
        node_id: int,
        write: Callable[[bytes], None] | None = None,
        to_topic: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        """`to_topic` gets the same lines as the file."""
        self._selection = settings.selection
        #: To be called when an operation with a text of `text_if_allowed` was allowed.
        self.repeat = self._repeat_sampled if settings.selection.sampled else self._repeat
        self.wants_allowed = settings.selection.wants_kind(Kind.ALLOWED)
        self._wants_denied = settings.selection.wants_kind(Kind.DENIED)
        self._path = settings.path
        self._clock = clock
        self._now_ms = clock.now_ms
        self._node_id = node_id
        self._write = write or (append_to(settings.path) if settings.path else None)
        self._to_topic = to_topic
        # None for what is not wanted.
        self._texts: dict[tuple[object, ...], str | None] = {}
        self._lines: list[str] = []
        # What the last line is about, and how many more there are of it that are not in `_lines`: a
        # number that only has as long to grow as the alarm takes.
        self._last_text = ""
        self._last_ms = 0
        self._repeated = 0
        self._alarm: Alarm | None = None
        self._broken = False

    def operation(
        self,
        context: RequestContext,
        operation: str,
        resource_type: str,
        resource: str,
        *,
        allowed: bool,
    ) -> None:
        """An operation of a request was allowed or denied."""
        text = self._known_text(context, operation, resource_type, resource, allowed=allowed)
        if text is not None:
            if allowed:
                self.repeat(text)
            else:
                self._add(text, self._now_ms())

    def text_if_allowed(
        self, context: RequestContext, operation: str, resource_type: str, resource: str
    ) -> str | None:
        """What `operation` would write, for `repeat`; None if nobody wants to know."""
        return self._known_text(context, operation, resource_type, resource, allowed=True)

    def _repeat(self, text: str) -> None:
        # This happens with every Produce and Fetch, mostly of a client that is busy with them.
        now_ms = self._now_ms()
        if text is self._last_text and now_ms == self._last_ms:
            self._repeated += 1
        else:
            self._add(text, now_ms)

    def _repeat_sampled(self, text: str) -> None:
        if self._selection.takes_next():
            self._repeat(text)

    def _known_text(
        self,
        context: RequestContext,
        operation: str,
        resource_type: str,
        resource: str,
        *,
        allowed: bool,
    ) -> str | None:
        if not (self.wants_allowed if allowed else self._wants_denied):
            return None
        known = (
            allowed, context.principal, context.client_host, context.listener_name,
            context.client_id, context.api_key, operation, resource_type, resource,
        )  # fmt: skip
        try:
            return self._texts[known]
        except KeyError:
            pass
        event = Event(
            Kind.ALLOWED if allowed else Kind.DENIED,
            context.principal,
            context.client_host,
            context.listener_name,
            client_id=context.client_id or "",
            api=API_BY_KEY[context.api_key].name,
            operation=operation,
            resource_type=resource_type,
            resource=resource,
        )
        if len(self._texts) >= TEXTS_MAX:
            self._texts.clear()
        own = allowed and _is_of_the_audit(context.api_key, operation, resource)
        text = self._texts[known] = None if own else self._text(event)
        return text

    def authentication(
        self, connection: ConnectionInfo, mechanism: str, *, principal: str = "", reason: str = ""
    ) -> None:
        """A client logged in as `principal`, or failed to for a `reason`."""
        kind = Kind.REJECTED if reason else Kind.AUTHENTICATED
        host, listener = connection.client_host, connection.listener_name
        text = self._text(Event(kind, principal, host, listener, mechanism, reason))
        if text is not None:
            self._add(text, self._now_ms())

    def on_login(self, connection: ConnectionInfo, mechanism: str, problem: str | None) -> None:
        """What SASL listeners report: a login, or why there was none."""
        principal = connection.principal if problem is None else ""
        self.authentication(connection, mechanism, principal=principal, reason=problem or "")

    def _text(self, event: Event) -> str | None:
        return content(event, self._node_id) if self._selection.wants(event) else None

    def _add(self, text: str, now_ms: int) -> None:
        lines = self._lines
        if self._repeated:
            self._add_repeated()
        lines.append(f'{{"time":{now_ms},{text}')
        self._last_text = text
        self._last_ms = now_ms
        if len(lines) >= LINES_MAX:
            self.flush()
        elif self._alarm is None:
            self._alarm = self._clock.call_later(WRITE_AFTER_MS, self.flush)

    def _add_repeated(self) -> None:
        self._lines += self._lines[-1:] * self._repeated
        self._repeated = 0

    def flush(self) -> None:
        """Write what has been collected; also at the end."""
        if self._repeated:
            self._add_repeated()
        self._last_text = ""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        lines, self._lines = self._lines, []
        if not lines:
            return
        if self._to_topic is not None:
            self._to_topic(lines)
        if self._write is None:
            return
        try:
            self._write("".join(lines).encode())
            self._broken = False
        except OSError as error:
            if not self._broken:
                logger.error(
                    "the audit log %s cannot be written, events are lost: %s",
                    self._path,
                    error.strerror or error,
                )
            self._broken = True


def _is_of_the_audit(api_key: ApiKey, operation: str, resource: str) -> bool:
    """Whether an event would bring about the next one: nodes write to the topic of audit events and
    replicate it, with CLUSTER_ACTION, and whoever reads it fetches again after each of them."""
    if operation == AclOperation.CLUSTER_ACTION.name:
        return api_key in (ApiKey.PRODUCE, ApiKey.FETCH)
    return resource == AUDIT_TOPIC and api_key in (ApiKey.FETCH, ApiKey.SHARE_FETCH)
