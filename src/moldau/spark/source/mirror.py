"""A consumer group that shows how far a query has read.

Spark keeps what a query has read in its checkpoint, where no lag tool looks. This commits the same
offsets to a consumer group. Invariants: the checkpoint alone decides where a query goes on;
nothing here fails a query, but for a group that has members of its own, which is refused at the
start; offsets are committed in the background, the newest of them, one commit at a time.

A reader in Spark's driver knows neither the name nor the id of its query, only tasks do. Without a
given group the first batch's first task therefore commits where it begins to
`moldau-spark-<name or id>`, with a token as the commit's metadata, by which the reader finds the
group.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from moldau.client.admin import Admin, AsyncAdmin
from moldau.client.errors import KafkaError
from moldau.client.loop_thread import LoopThread
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.spark.source.machine.offsets import Offsets
from moldau.spark.source.machine.options import SourceOptions

__all__ = ["PAUSE_S", "GroupMirror", "GroupTaken", "announce", "query_group"]

_log = logging.getLogger(__name__)

DEFAULT_PREFIX: Final = "moldau-spark"
_TIMEOUT_S: Final = 10.0
_RETRY_PAUSE_S: Final = 2.0
# A query with ten batches a second needs no ten commits: they take time from its next batch.
PAUSE_S: Final = 0.25
_CANDIDATES_MAX: Final = 1_000
# How Spark describes a batch's job: the name if there is one, id, runId and batch, in lines of text
# or, before Spark 4, of HTML.
_DESCRIPTION: Final = re.compile(
    r"(?:(?P<name>.*?)(?:\n|<br/>))?id = [0-9a-f-]+(?:\n|<br/>)", re.DOTALL
)


class GroupTaken(Exception):
    """The group that a query was to be mirrored to has consumers of its own."""


class GroupMirror:
    """Commits a query's offsets; made for one run of it."""

    def __init__(self, options: SourceOptions, thread: LoopThread) -> None:
        self._config = admin_config(options)
        self._thread = thread
        self._group = options.group_id
        self._prefix = options.group_id_prefix or DEFAULT_PREFIX
        self._token = uuid4().hex
        self._is_announced = False
        self._admin: AsyncAdmin | None = None
        self._wanted: Offsets = {}
        self._committed: Offsets = {}
        self._committing: Future[None] | None = None
        self._retry_s = 0.0
        self._has_warned = False

    def announcement(self) -> str | None:
        """What a task of the next batch has to announce the group with; None if it is known."""
        if self._group is not None:
            return None
        self._is_announced = True
        return self._token

    def check_group(self) -> None:
        """Raise GroupTaken if a given group has members."""
        if self._group is None:
            return
        try:
            members = self._thread.call(self._members(self._group))
        except KafkaError as error:
            self._warn(error)
            return
        if members:
            raise GroupTaken(
                f"The consumer group {self._group} has members ({', '.join(members[:5])}): "
                "committing this query's offsets would move what they read. Give the query a "
                "'groupId' of its own, or set 'mirrorOffsets' to false."
            )

    async def _members(self, group: str) -> list[str]:
        found = await self._opened().describe_consumer_groups(
            [group], timeout=_TIMEOUT_S, check=False
        )
        # A group that does not exist, or is none of consumers, has no members here.
        described = found.values_by_key.get(group)
        return [] if described is None else [each.client_id for each in described.members]

    def done(self, offsets: Mapping[TopicPartition, int]) -> None:
        """All below these offsets has been read and written; commit them soon."""
        self._wanted = dict(offsets)
        if self._is_due() and time.monotonic() >= self._retry_s:
            self._committing = self._started()

    def flush(self, seconds: float) -> None:
        """Wait until the newest offsets are committed, or cannot be."""
        # The one under way may be of older offsets, and fail.
        for _ in range(2):
            if self._is_due():
                self._committing = self._started()
                with suppress(TimeoutError, CancelledError):
                    self._committing.result(seconds)

    def _is_due(self) -> bool:
        # Before the first batch the group is not known.
        may_commit = self._group is not None or self._is_announced
        return may_commit and bool(self._wanted) and self._wanted != self._committed

    def _started(self) -> Future[None]:
        if self._committing is None or self._committing.done():
            return self._thread.submit(self._commit())
        return self._committing

    async def _commit(self) -> None:
        wanted = self._wanted
        # Set before the try: an idle query asks for the same commit many times in a second.
        self._retry_s = time.monotonic() + _RETRY_PAUSE_S
        try:
            if not await self._commit_once(wanted):
                return
        except Exception as error:
            # Whatever it is, a query that reads and writes well is worth more than its mirror.
            self._warn(error)
            return
        # Newer offsets come with the next question for the latest ones, or with `flush`.
        self._committed = wanted
        self._retry_s = time.monotonic() + PAUSE_S
        self._has_warned = False

    async def _commit_once(self, offsets: Offsets) -> bool:
        if self._group is None:
            self._group = await self._announced()
            if self._group is None:
                return False
        await self._opened().alter_consumer_group_offsets(
            self._group,
            {key: OffsetAndMetadata(offset) for key, offset in offsets.items()},
            timeout=_TIMEOUT_S,
        )
        return True

    async def _announced(self) -> str | None:
        """The group that a task has written the token to, None if none has."""
        admin = self._opened()
        listings = await admin.list_consumer_groups(timeout=_TIMEOUT_S, check=False)
        names = [
            each.group_id for each in listings if each.group_id.startswith(f"{self._prefix}-")
        ][:_CANDIDATES_MAX]
        if not names:
            return None
        found = await admin.list_consumer_group_offsets(
            dict.fromkeys(names), timeout=_TIMEOUT_S, check=False
        )
        for name, offsets in found.values_by_key.items():
            for each in offsets.values():
                if each is not None and each.metadata == self._token:
                    return name
        return None

    def _opened(self) -> AsyncAdmin:
        if self._admin is None:
            self._admin = AsyncAdmin(self._config)
        return self._admin

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            # Once per outage: every batch tries again.
            self._has_warned = True
            _log.warning(
                "The query's offsets are not mirrored to group %s for now, lag tools show an older "
                "state: %s",
                self._group or f"{self._prefix}-*",
                error,
            )

    def close(self) -> None:
        """Wait a little for what is on its way."""
        self.flush(2.0)
        if self._admin is not None:
            self._thread.call(self._close(self._admin))

    async def _close(self, admin: AsyncAdmin) -> None:
        tasks = [self._committing] if self._committing is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
        await admin.close()


def admin_config(options: SourceOptions) -> dict[str, Any]:
    """The settings of the source's clients that an admin client has too."""
    from moldau.client.config import ADMIN_KEYS, keys_of

    return keys_of(ADMIN_KEYS, options.config)


def query_group(prefix: str | None, description: str | None, query_id: str | None) -> str | None:
    """The default group of a query, from the properties of Spark's tasks; None outside of one."""
    prefix = prefix or DEFAULT_PREFIX
    found = _DESCRIPTION.match(description or "")
    if found is not None and found["name"]:
        return f"{prefix}-{found['name']}"
    return f"{prefix}-{query_id}" if query_id else None


def announce(
    options: SourceOptions, group: str, key: TopicPartition, offset: int, token: str
) -> None:
    """Tell the reader in the driver, from a task, which group is the query's."""
    try:
        with Admin(admin_config(options)) as admin:
            admin.alter_consumer_group_offsets(
                group, {key: OffsetAndMetadata(offset, token)}, timeout=_TIMEOUT_S
            )
    except KafkaError as error:
        _log.warning("The query's offsets are not mirrored to group %s yet: %s", group, error)
