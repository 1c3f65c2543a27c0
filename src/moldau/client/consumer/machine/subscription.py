"""What a consumer is subscribed to, what it is assigned, and where it stands there.

Shared by the application's thread, which seeks, pauses and takes records, and the event loop, which
finds positions and fetches: every method takes the `lock` that the owner passes in.

Invariants: names, a pattern and partitions assigned by hand exclude each other until
`unsubscribe`; only assigned partitions have a position; `unready` holds exactly the assigned
partitions that have none to fetch from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Any

from moldau.client.consumer.machine.positions import (
    FetchState,
    Position,
    PositionState,
    ResetKind,
    ResetStrategy,
)
from moldau.client.errors import IllegalStateError, KafkaError, LogTruncationError
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.times import ElapsedMs

__all__ = ["SubscriptionKind", "SubscriptionState"]

UNDEFINED = -1


class SubscriptionKind(Enum):
    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    SERVER_PATTERN = "pattern of the broker"
    ASSIGNED = "partitions"


class SubscriptionState:
    """See the module."""

    def __init__(
        self, default_reset: ResetStrategy, lock: AbstractContextManager[Any] | None = None
    ) -> None:
        """`lock` can be taken again by who has it; without one all callers are in one thread."""
        self.lock = lock or nullcontext()
        self.default_reset = default_reset
        self.kind = SubscriptionKind.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.server_pattern: str | None = None
        self.listener: Any = None
        self.assignment: dict[TopicPartition, PositionState] = {}
        self.unready: set[TopicPartition] = set()
        self._versions = 0

    # Subscribing.

    @property
    def is_automatic(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.kind not in (SubscriptionKind.NONE, SubscriptionKind.ASSIGNED)

    def subscribe_topics(self, topics: Collection[str], listener: Any) -> bool:
        """Whether the set of topics is another than before."""
        with self.lock:
            self._become(SubscriptionKind.TOPICS)
            self.listener = listener
            return self._set_topics(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: Any) -> None:
        with self.lock:
            self._become(SubscriptionKind.PATTERN)
            self.listener = listener
            self.pattern = pattern

    def subscribe_server_pattern(self, pattern: str, listener: Any) -> None:
        with self.lock:
            self._become(SubscriptionKind.SERVER_PATTERN)
            self.listener = listener
            self.server_pattern = pattern

    def on_topics_matched(self, topics: Collection[str]) -> bool:
        """These topics match the pattern now; whether they are others than before."""
        with self.lock:
            return self._set_topics(frozenset(topics))

    def assign_by_user(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the assignment is another than before. Partitions that stay keep their place."""
        with self.lock:
            self._become(SubscriptionKind.ASSIGNED)
            wanted = set(partitions)
            if wanted == self.assignment.keys():
                return False
            for key in [key for key in self.assignment if key not in wanted]:
                self._drop(key)
            for key in partitions:
                if key not in self.assignment:
                    self._add(key)
            return True

    def unsubscribe(self) -> None:
        with self.lock:
            self.kind = SubscriptionKind.NONE
            self.topics = frozenset()
            self.pattern = None
            self.server_pattern = None
            self.listener = None
            self.assignment.clear()
            self.unready.clear()

    def _set_topics(self, topics: frozenset[str]) -> bool:
        changed = self.topics != topics
        self.topics = topics
        for key, state in self.assignment.items():
            state.unsubscribed = key.topic not in topics
        return changed

    def _become(self, kind: SubscriptionKind) -> None:
        if self.kind not in (SubscriptionKind.NONE, kind):
            raise IllegalStateError(
                "Subscription to topics, partitions and pattern are mutually exclusive",
                advice=f"unsubscribe() first from its {self.kind.value}",
            )
        self.kind = kind

    # The assignment by a group.

    def add_assigned(self, partitions: Iterable[TopicPartition], *, awaits_listener: bool) -> None:
        """Partitions that a group gave; not fetched before the listener was called."""
        with self.lock:
            for key in sorted(partitions):
                if key not in self.assignment:
                    self._add(key).awaits_listener = awaits_listener

    def enable(self, partitions: Iterable[TopicPartition]) -> None:
        """The listener knows of them."""
        with self.lock:
            for key in partitions:
                state = self.assignment.get(key)
                if state is not None:
                    state.awaits_listener = False

    def mark_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand nothing of them out any more, they go soon; of the others again."""
        going = frozenset(partitions)
        with self.lock:
            for key, state in self.assignment.items():
                state.pending_revocation = key in going

    def remove_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            for key in partitions:
                self._drop(key)

    def _add(self, key: TopicPartition) -> PositionState:
        state = PositionState()
        # Versions are never used twice: what was fetched before a partition left and came
        # back must not be taken for its own.
        self._versions += 1_000_000_000
        state.version = self._versions
        self.assignment[key] = state
        self.unready.add(key)
        return state

    def _drop(self, key: TopicPartition) -> None:
        if self.assignment.pop(key, None) is not None:
            self.unready.discard(key)

    # Positions.

    def assigned(self, key: TopicPartition) -> PositionState:
        """The state of an assigned partition; IllegalStateError for another."""
        state = self.assignment.get(key)
        if state is None:
            raise IllegalStateError(f"No current assignment for partition {key}")
        return state

    def seek(self, key: TopicPartition, position: Position) -> None:
        with self.lock:
            self.assigned(key).seek(position)
            self._note(key)

    def rewind(self, key: TopicPartition, offset: OffsetAndMetadata) -> None:
        """Back to an offset before the position, in the same log."""
        with self.lock:
            state = self.assignment.get(key)
            if state is None or state.state is not FetchState.FETCHING or state.position is None:
                return
            state.seek_validated(
                state.position._replace(offset=offset.offset, offset_epoch=offset.leader_epoch)
            )

    def seek_if_initializing(self, key: TopicPartition, position: Position) -> None:
        """A committed offset was found."""
        with self.lock:
            state = self.assignment.get(key)
            if state is not None and state.state is FetchState.INITIALIZING:
                state.seek(position)
                self._note(key)

    def request_reset(self, key: TopicPartition, strategy: ResetStrategy) -> None:
        with self.lock:
            self.assigned(key).await_reset(strategy)
            self._note(key)

    def reset_initializing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Nothing is committed for them: reset those that still wait, or say which cannot be."""
        with self.lock:
            helpless = []
            for key in partitions:
                state = self.assignment.get(key)
                if state is None or state.state is not FetchState.INITIALIZING:
                    continue
                if self.default_reset.kind is ResetKind.NONE:
                    helpless.append(key)
                else:
                    state.await_reset(self.default_reset)
                    self._note(key)
            return helpless

    def complete_reset(
        self, key: TopicPartition, strategy: ResetStrategy, position: Position
    ) -> None:
        """An offset was found by `strategy`, if that is still what is waited for."""
        with self.lock:
            state = self.assignment.get(key)
            if state is None or state.state is not FetchState.AWAIT_RESET:
                return
            if state.reset_strategy == strategy:
                state.seek(position)
                self._note(key)

    def on_metadata(self, picture: ClusterMetadata) -> None:
        """Leaders may have changed: positions are to be validated then."""
        with self.lock:
            for key, state in self.assignment.items():
                view = picture.partition(key)
                if view is not None:
                    state.on_leader(view.leader_id, view.leader_epoch)
                    self._note(key)

    def complete_validation(
        self, key: TopicPartition, asked: Position, epoch: int, end_offset: int
    ) -> KafkaError | None:
        """A leader returned where the epoch of `asked` ends in its log; an error if the position is
        not in that log and there is no reset strategy."""
        with self.lock:
            state = self.assignment.get(key)
            if state is None or state.state is not FetchState.AWAIT_VALIDATION:
                return None
            position = state.position
            if position != asked or position is None:
                return None
            has_reset = self.default_reset.kind is not ResetKind.NONE
            if epoch == UNDEFINED or end_offset == UNDEFINED:
                if not has_reset:
                    return _truncated(key, position, None)
                state.await_reset(self.default_reset)
            elif end_offset < position.offset:
                if not has_reset:
                    return _truncated(key, position, OffsetAndMetadata(end_offset, "", epoch))
                state.seek_validated(position._replace(offset=end_offset, offset_epoch=epoch))
            else:
                state.complete_validation()
            self._note(key)
            return None

    def _note(self, key: TopicPartition) -> None:
        state = self.assignment.get(key)
        if state is None or state.state is FetchState.FETCHING:
            self.unready.discard(key)
        else:
            self.unready.add(key)

    # Questions.

    def waiting(self, kind: FetchState, now_ms: ElapsedMs) -> dict[TopicPartition, PositionState]:
        """Unready partitions of a kind that may be worked on now."""
        with self.lock:
            found = {}
            # In an order of their own: a set's differs between processes.
            for key in sorted(self.unready):
                state = self.assignment[key]
                if state.state is kind and state.retry_at_ms <= now_ms:
                    found[key] = state
            return found

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit without offsets commits."""
        with self.lock:
            return {
                key: OffsetAndMetadata(state.position.offset, "", state.position.offset_epoch)
                for key, state in self.assignment.items()
                if state.state is FetchState.FETCHING and state.position is not None
            }

    def paused(self) -> set[TopicPartition]:
        with self.lock:
            return {key for key, state in self.assignment.items() if state.paused}

    def set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self.lock:
            states = [self.assigned(key) for key in partitions]
            for state in states:
                state.paused = paused


def _truncated(
    key: TopicPartition, position: Position, common: OffsetAndMetadata | None
) -> LogTruncationError:
    shown = "unknown" if common is None else f"offset {common.offset}, epoch {common.leader_epoch}"
    return LogTruncationError(
        f"Detected log truncation for {key} at offset {position.offset}, epoch "
        f"{position.offset_epoch}; the last common offset is {shown}",
        {key: common},
    )
