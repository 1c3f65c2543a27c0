"""Epochs that partitions have seen and the log of the coordinator has lost.

After a power failure the end of an unreplicated `__transaction_state` partition may be missing,
while other partitions still have batches with the newer epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import NamedTuple

from moldau.broker.coordinator.transaction.machine.metadata import PREPARED, TransactionMetadata
from moldau.times import WallMs

SeenEpochs = Callable[[Set[int]], Mapping[int, int]]
"""The newest epoch of each of these producer ids that any partition here has seen."""


class LostEpochs(NamedTuple):
    caught_up: list[TransactionMetadata]
    """To be written: no producer gets an epoch again that a partition has seen."""
    ahead: dict[str, int]
    """Transactional ids that are prepared: the epoch to continue from when they are complete."""


def find_lost_epochs(
    transactions: Collection[TransactionMetadata], seen_epochs: SeenEpochs, now_ms: WallMs
) -> LostEpochs:
    seen = seen_epochs({each.producer_id for each in transactions})
    found = LostEpochs([], {})
    for metadata in transactions:
        epoch = seen.get(metadata.producer_id, metadata.producer_epoch)
        if epoch <= metadata.producer_epoch:
            continue
        if metadata.state in PREPARED:
            found.ahead[metadata.transactional_id] = epoch
        else:
            found.caught_up.append(metadata.caught_up(epoch, now_ms))
    return found
