"""Share sessions (KIP-932): which partitions a member fetches from this node, sent only once.

A member opens its session with epoch 0, continues it with 1, 2, ... and closes it with -1.
`TRANSITIONS` says what each request does in each state; README.md shows the table.

Invariants, checked where they could break: a member of a group has at most one session; every
session is in the index of its connection and counted for its group, and nothing is stored for a
connection or a group without sessions; there are at most `sessions_max`; the epoch that a session
expects is positive.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from moldau.invariant import invariant, present
from moldau.wire.errors import ApiError, ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1


class SessionState(Enum):
    """Of one member."""

    NONE = "no session"
    OPEN = "open"


class SessionRequest(Enum):
    """What a request does, by the epoch that it carries."""

    OPENS = "opens (epoch 0)"
    CONTINUES = "continues"
    CLOSES = "closes (epoch -1)"


#: The member's next state, or the error that it gets. A request that continues a session must also
#: carry the epoch that the session expects.
TRANSITIONS: Final[dict[tuple[SessionState, SessionRequest], SessionState | ErrorCode]] = {
    (SessionState.NONE, SessionRequest.OPENS): SessionState.OPEN,
    (SessionState.NONE, SessionRequest.CONTINUES): ErrorCode.SHARE_SESSION_NOT_FOUND,
    (SessionState.NONE, SessionRequest.CLOSES): ErrorCode.SHARE_SESSION_NOT_FOUND,
    (SessionState.OPEN, SessionRequest.OPENS): SessionState.OPEN,
    (SessionState.OPEN, SessionRequest.CONTINUES): SessionState.OPEN,
    (SessionState.OPEN, SessionRequest.CLOSES): SessionState.NONE,
}


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
            # The end of an error must be in a response as well.
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

    def check_move(self, key: SessionKey, request: SessionRequest) -> None:
        """Raise the error that a request of this kind gets in the member's state, if any."""
        state = SessionState.OPEN if key in self._sessions else SessionState.NONE
        outcome = TRANSITIONS[state, request]
        if isinstance(outcome, ErrorCode):
            raise ApiError(
                outcome,
                f"member {key.member_id} of group {key.group_id} has no share session here:"
                " open one with epoch 0",
            )

    def open(
        self, key: SessionKey, partitions: Iterable[TopicIdPartition], connection_id: str
    ) -> ShareSession:
        """A new session in place of the member's previous one, if there is room."""
        self.check_move(key, SessionRequest.OPENS)
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

    def proceed(self, key: SessionKey, epoch: int) -> ShareSession:
        """The member's session, for a request with `epoch`; it expects the next epoch from now."""
        self.check_move(key, SessionRequest.CONTINUES)
        session = self._sessions[key]
        if session.epoch != epoch:
            raise ApiError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"the share session of member {key.member_id} expects epoch {session.epoch}, not"
                f" {epoch}: open a new one with epoch 0",
            )
        session.epoch = next_epoch(epoch)
        invariant(session.epoch > 0, f"the share session of {key} expects epoch {session.epoch}")
        return session

    def close(self, key: SessionKey) -> ShareSession:
        """Remove the member's session; SHARE_SESSION_NOT_FOUND if it has none."""
        self.check_move(key, SessionRequest.CLOSES)
        return present(self.remove(key), f"the share session of {key} is gone")

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Remove the member's session if it has one."""
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        keys = self._by_connection.get(session.connection_id, set())
        count = self._members_count.get(key.group_id, 0)
        invariant(
            key in keys and count > 0,
            f"the share session of {key} is not indexed by its connection and its group",
        )
        keys.discard(key)
        if not keys:
            del self._by_connection[session.connection_id]
        if count > 1:
            self._members_count[key.group_id] = count - 1
        else:
            del self._members_count[key.group_id]
        return session


def rotated(partitions: list[TopicIdPartition], epoch: int) -> list[TopicIdPartition]:
    """Begin with a different partition in each request, so that max_bytes starves none."""
    if epoch < 1 or len(partitions) < 2:
        return partitions
    at = epoch % len(partitions)
    return partitions[at:] + partitions[:at]
