"""A share session with one node: which partitions it has, and which epoch comes next.

Pure. The node counts requests with us: epoch 0 opens a session, each one after carries the next
number, -1 closes it and releases whatever is still acquired in it. After an error that leaves open
whether the node counted, a new one is opened, which closes the old one. Invariants: nothing
is acknowledged in the request that opens a session, as it would have acquired nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from moldau.client.share.machine.acknowledgements import TopicIdPartition
from moldau.wire.errors import ErrorCode

__all__ = ["FINAL_EPOCH", "ShareSession"]

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1
_LOST: Final = frozenset(
    (
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    )
)


class ShareSession:
    """See the module."""

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        self.partitions: set[TopicIdPartition] = set()

    @property
    def is_new(self) -> bool:
        return self.epoch == INITIAL_EPOCH

    def change(
        self, wanted: Collection[TopicIdPartition]
    ) -> tuple[set[TopicIdPartition], set[TopicIdPartition]]:
        """Partitions that the next request adds and takes out, so that it has those wanted."""
        after = set(wanted)
        if self.is_new:
            added, removed = after, set[TopicIdPartition]()
        else:
            added, removed = after - self.partitions, self.partitions - after
        self.partitions = after
        return set(added), removed

    def on_answered(self, code: ErrorCode) -> None:
        if code in _LOST:
            self.epoch = INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def on_failed(self) -> None:
        """Whether the request arrived is not known."""
        self.epoch = INITIAL_EPOCH
