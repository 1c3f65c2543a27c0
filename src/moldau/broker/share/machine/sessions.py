"""Share sessions (KIP-932): which partitions a member wants of this node, told only once.

A member opens its session with epoch 0, continues it with 1, 2, ... and closes it with -1. What
always holds: a member of a group has one session at most, whose connection is alive; there are no
more than `sessions_max`; nothing is held for a connection without sessions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from moldau.wire.errors import ApiError, ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1


class TopicIdPartition(NamedTuple):
    topic_id: UUID
    partition: int


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


def next_epoch(epoch: int) -> int:
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class ShareSession:
    """One member's partitions."""

    __slots__ = ("connection_id", "epoch", "key", "partitions")

    def __init__(
        self, key: SessionKey, partitions: Iterable[TopicIdPartition], connection_id: str
    ) -> None:
        self.key = key
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[TopicIdPartition, bool] = dict.fromkeys(partitions, False)
        """Whether the next response has to mention the partition, whatever it has."""

    def update(
        self, wanted: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        for partition in wanted:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def must_mention(self, partition: TopicIdPartition, *, has_records: bool, failed: bool) -> bool:
        """Whether a response has to mention the partition; call it once for each response."""
        due = self.partitions.get(partition)
        if due is not None and due is not failed:
            # An error that is over has to be told as well.
            self.partitions[partition] = failed
        return has_records or failed or bool(due)


class ShareSessions:
    """All share sessions of this node."""

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[str, set[SessionKey]] = {}
        self._members_count: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def all_keys(self) -> list[SessionKey]:
        return list(self._sessions)

    def of_connection(self, connection_id: str) -> set[SessionKey]:
        return set(self._by_connection.get(connection_id, ()))

    def has_members(self, group_id: str) -> bool:
        return group_id in self._members_count

    def open(
        self, key: SessionKey, partitions: Iterable[TopicIdPartition], connection_id: str
    ) -> ShareSession:
        """A new session in place of the member's former one, if there is room."""
        self.remove(key)
        if len(self._sessions) >= self._sessions_max:
            raise ApiError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"this node has {self._sessions_max} share sessions already"
                " (group.share.max.share.sessions): try again later",
            )
        session = self._sessions[key] = ShareSession(key, partitions, connection_id)
        self._by_connection.setdefault(connection_id, set()).add(key)
        self._members_count[key.group_id] = self._members_count.get(key.group_id, 0) + 1
        return session

    def existing(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(
                ErrorCode.SHARE_SESSION_NOT_FOUND,
                f"member {key.member_id} of group {key.group_id} has no share session here:"
                " open one with epoch 0",
            )
        return session

    def proceed(self, key: SessionKey, epoch: int) -> ShareSession:
        """The member's session, for a request with `epoch`; its epoch is the next one now."""
        session = self.existing(key)
        if session.epoch != epoch:
            raise ApiError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"the share session of member {key.member_id} expects epoch {session.epoch}, not"
                f" {epoch}: open a new one with epoch 0",
            )
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        keys = self._by_connection[session.connection_id]
        keys.discard(key)
        if not keys:
            del self._by_connection[session.connection_id]
        left = self._members_count[key.group_id] - 1
        if left:
            self._members_count[key.group_id] = left
        else:
            del self._members_count[key.group_id]
        return session


def rotated(partitions: list[TopicIdPartition], epoch: int) -> list[TopicIdPartition]:
    """Begin with another partition in every request, so that none is starved by max_bytes."""
    if epoch < 1 or len(partitions) < 2:
        return partitions
    at = epoch % len(partitions)
    return partitions[at:] + partitions[:at]
