"""The share partitions that this node leads, the sessions of members that fetch from them, and the
effects of their requests.

Invariants: a share partition exists here at most once, while this node leads its partition and its
group has a session here; a session that ends releases what its member holds; all requests see the
effects of those before them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol

from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import SharePartitionKey
from moldau.broker.faults import contained
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.replication.machine.names import CurrentLeader, TopicKey
from moldau.broker.replication.machine.purgatory import Purgatory
from moldau.broker.replication.partition import Partition
from moldau.broker.share.delayed_fetch import (
    DelayedShareFetch,
    Fetched,
    FetchedPartition,
    ShareFetchLimits,
)
from moldau.broker.share.machine.acquisition import ShareSettings
from moldau.broker.share.machine.partition import AckBatch
from moldau.broker.share.machine.sessions import (
    SessionKey,
    ShareSession,
    ShareSessions,
    TopicIdPartition,
)
from moldau.broker.share.shell import SharePartitionShell
from moldau.clock import Clock
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)


class ShareReplicas(Protocol):
    """Where partitions are found: the replica manager."""

    def get(self, key: TopicKey, index: int) -> Partition: ...

    def find(self, key: TopicKey, index: int) -> Partition | None: ...

    def current_leader(
        self, key: TopicKey, index: int, listener_name: str
    ) -> CurrentLeader | None: ...


class Acknowledging:
    """Acknowledgements that are being stored."""

    __slots__ = ("_outcome", "_waiting")

    def __init__(
        self,
        outcome: dict[TopicIdPartition, ApiError | None],
        waiting: dict[TopicIdPartition, asyncio.Future[None]],
    ) -> None:
        self._outcome = outcome
        self._waiting = waiting

    async def outcome(self) -> dict[TopicIdPartition, ApiError | None]:
        """The outcome for each partition, once all are stored or rejected."""
        for partition, answer in self._waiting.items():
            try:
                await answer
            except ApiError as error:
                self._outcome[partition] = error
        return self._outcome


class SharePartitionManager:
    """See the module. All methods run on the loop's thread."""

    def __init__(
        self,
        replicas: ShareReplicas,
        persister: Persister,
        settings: GroupSettings,
        *,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        sessions_max: int = 2000,
        enabled: Callable[[], bool] = lambda: True,
    ) -> None:
        """`sessions_max` is group.share.max.share.sessions; `enabled` whether the cluster has share
        groups (its feature share.version)."""
        self.replicas = replicas
        self.persister = persister
        self.clock = clock
        self.sessions = ShareSessions(sessions_max)
        self.purgatory = Purgatory(loop)
        self._loop = loop
        self._settings = settings
        self._enabled = enabled
        self._shells: dict[str, dict[TopicIdPartition, SharePartitionShell]] = {}
        self._settings_of: dict[str, ShareSettings] = {}
        self._fetches: dict[SessionKey, DelayedShareFetch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return sum(map(len, self._shells.values()))

    # For share partitions.

    def settings_of(self, group_id: str) -> ShareSettings:
        """Needed for each request, so it is cached until a config changes or the group is gone."""
        settings = self._settings_of.get(group_id)
        if settings is None:
            get = self._settings.get
            settings = ShareSettings(
                get(group_id, "share.delivery.count.limit"),
                get(group_id, "share.partition.max.record.locks"),
                get(group_id, "share.record.lock.duration.ms"),
                get(group_id, "share.renew.acknowledge.enable"),
            )
            if group_id in self._shells:
                self._settings_of[group_id] = settings
        return settings

    def offset_reset_of(self, group_id: str) -> str:
        return str(self._settings.get(group_id, "share.auto.offset.reset"))

    def is_read_committed(self, group_id: str) -> bool:
        return bool(self._settings.get(group_id, "share.isolation.level") == "read_committed")

    def lock_duration_ms_of(self, group_id: str) -> int:
        return self.settings_of(group_id).record_lock_duration_ms

    def run_task(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closed:
            work.close()
            return
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a share partition failed", exc_info=error)

    def on_ended(self, shell: SharePartitionShell) -> None:
        group_id, topic_id, partition = shell.key
        shells = self._shells.get(group_id, {})
        key = TopicIdPartition(topic_id, partition)
        if shells.get(key) is shell:
            del shells[key]
            if not shells:
                del self._shells[group_id]
                self._settings_of.pop(group_id, None)

    # Sessions.

    def check_enabled(self) -> None:
        if self._closed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node is stopping")
        if not self._enabled():
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The cluster has no share groups: raise its feature share.version to 1.",
            )

    def open_session(
        self,
        key: SessionKey,
        partitions: Iterable[TopicIdPartition],
        connection: ConnectionInfo,
    ) -> ShareSession:
        """Open a member's session, or replace it; the member keeps the records it holds."""
        self._abandon_fetch(key)
        session = self.sessions.open(key, partitions, connection.connection_id)
        connection.when_closed(self._on_connection_closed)
        return session

    async def release_session(self, key: SessionKey) -> None:
        """End a member's session and release what it holds; SHARE_SESSION_NOT_FOUND if it has
        none."""
        session = self.sessions.close(key)
        self._abandon_fetch(key)
        waiting = self._release(session)
        if waiting:
            await asyncio.wait(waiting)
        if not self.sessions.has_members(key.group_id):
            self._drop_group(key.group_id)

    def _release(self, session: ShareSession) -> list[asyncio.Future[None]]:
        """Begin to release what the member holds in any partition."""
        waiting = []
        # A session may have dropped a partition while its member still held records.
        for shell in list(self._shells.get(session.key.group_id, {}).values()):
            if shell.machine is not None:
                answer = shell.release(session.key.member_id)
                if answer is not None:
                    waiting.append(answer)
        return waiting

    def _on_connection_closed(self, connection: ConnectionInfo) -> None:
        for key in self.sessions.of_connection(connection.connection_id):
            self.run_task(self.release_session(key))

    def _abandon_fetch(self, key: SessionKey) -> None:
        fetch = self._fetches.pop(key, None)
        if fetch is not None:
            fetch.abandon()

    # Requests.

    async def fetch(
        self,
        key: SessionKey,
        partitions: Collection[TopicIdPartition],
        limits: ShareFetchLimits,
    ) -> Fetched:
        """Acquire records of the partitions, in this order, for a member."""
        if not partitions or limits.max_records <= 0 or limits.max_bytes <= 0:
            return {}
        fetched: Fetched = {}
        shells: dict[TopicIdPartition, SharePartitionShell] = {}
        for partition in partitions:
            try:
                shells[partition] = self._shell(key.group_id, partition)
            except ApiError as error:
                fetched[partition] = FetchedPartition(error)
        if not shells:
            return fetched
        answer: asyncio.Future[Fetched] = self._loop.create_future()
        waiting = DelayedShareFetch(key.member_id, shells, limits, self.purgatory, answer)
        self._abandon_fetch(key)
        self._fetches[key] = waiting
        try:
            waiting.start()
            fetched.update(await answer)
        finally:
            waiting.abandon()
            if self._fetches.get(key) is waiting:
                del self._fetches[key]
        return fetched

    def _shell(self, group_id: str, wanted: TopicIdPartition) -> SharePartitionShell:
        shell = self._shells.get(group_id, {}).get(wanted)
        if shell is None:
            partition = self.replicas.get(wanted.topic_id.bytes, wanted.partition)
            partition.check_online()
            shell = SharePartitionShell(self, SharePartitionKey(group_id, *wanted), partition)
            self._shells.setdefault(group_id, {})[wanted] = shell
        return shell

    def acknowledge(
        self, key: SessionKey, batches: Mapping[TopicIdPartition, Sequence[AckBatch]]
    ) -> Acknowledging:
        """Begin to store a member's acknowledgements; requests from now on see them."""
        outcome: dict[TopicIdPartition, ApiError | None] = {}
        waiting: dict[TopicIdPartition, asyncio.Future[None]] = {}
        shells = self._shells.get(key.group_id, {})
        for partition, wanted in batches.items():
            shell = shells.get(partition)
            outcome[partition] = None
            if shell is None:
                outcome[partition] = ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    "no record of this partition was fetched from this node",
                )
                continue
            try:
                answer = shell.acknowledge(key.member_id, wanted)
            except ApiError as error:
                outcome[partition] = error
                continue
            if answer is not None:
                waiting[partition] = answer
        return Acknowledging(outcome, waiting)

    # Changes and shutdown.

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Drop what this node no longer leads; after the replica manager has applied the delta."""
        if delta.configs or delta.from_snapshot:
            self._settings_of.clear()
        if delta.features and not self._enabled():
            for session_key in self.sessions.all_keys():
                self.run_task(self.release_session(session_key))
        if not (delta.topics or delta.deleted_topics or delta.from_snapshot):
            return
        for shell in self._all_shells():
            key = shell.key
            hosted = self.replicas.find(key.topic_id.bytes, key.partition)
            if (
                hosted is shell.partition
                and hosted.error is None
                and hosted.leader_epoch == shell.leader_epoch
            ):
                continue
            # Also if it leads again: another node may have led meanwhile and changed the state.
            code = None if hosted is None else hosted.error
            if key.topic_id not in image.topics_by_id:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            gone = ApiError(
                code or ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{key} is no longer served by this node",
            )
            contained(f"the end of share partition {key}", shell.end, gone)

    def _drop_group(self, group_id: str) -> None:
        """The group has no session here: its state is read again with its next session."""
        gone = ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the group has no share session here any more"
        )
        for shell in list(self._shells.get(group_id, {}).values()):
            shell.end(gone)

    def _all_shells(self) -> list[SharePartitionShell]:
        return [shell for shells in self._shells.values() for shell in shells.values()]

    async def close(self) -> None:
        """Stop: nothing is stored any more, and waiting fetches get an empty response."""
        self._closed = True
        for fetch in list(self._fetches.values()):
            fetch.abandon()
        for shell in self._all_shells():
            shell.end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node is stopping"))
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
