"""How a partition's leader, ISR and eligible leader replicas change together.

A clean leader comes from the ISR or, when that is empty, from the eligible leader replicas
(KIP-966). Everything else is unclean: the ISR becomes that leader alone and the partition is
marked RECOVERING. Without eligible leader replicas the ISR keeps its last member, because somebody
must remember who has the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from moldau.broker.metadata.model import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    Partition,
)
from moldau.wire.messages import PartitionChangeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRules:
    """The topic's and cluster's settings that decide an election."""

    min_isr: int = 1
    elr_enabled: bool = True
    unclean_enabled: bool = False


def change_partition(
    partition: Partition,
    *,
    topic_id: UUID,
    index: int,
    isr: Collection[int],
    acceptable: Callable[[int], bool],
    rules: ElectionRules,
    unclean_shutdown: Collection[int] = (),
    recovery_state: LeaderRecoveryState | None = None,
) -> PartitionChangeRecord | None:
    """The record that gives `partition` this ISR and a leader to match, None if all stays.

    `acceptable` says which replicas may lead now. Replicas in `unclean_shutdown` may have lost
    data and are no longer eligible.
    """
    new_isr = tuple(replica for replica in isr if replica not in unclean_shutdown)
    if not new_isr and not rules.elr_enabled:
        new_isr = partition.isr
    elr = tuple(replica for replica in partition.elr if replica not in unclean_shutdown)
    leader, clean = _elect(partition, new_isr, elr, acceptable, rules)
    state = partition.leader_recovery_state if recovery_state is None else recovery_state
    if leader != NO_LEADER and leader not in new_isr:
        new_isr = (leader,)
        if not clean:
            state = LeaderRecoveryState.RECOVERING
    new_elr, last_known = _eligible(partition, new_isr, leader, rules, unclean_shutdown)
    record = PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=None if new_isr == partition.isr else list(new_isr),
        leader=NO_LEADER_CHANGE if leader == partition.leader else leader,
        leader_recovery_state=-1 if state == partition.leader_recovery_state else int(state),
        eligible_leader_replicas=None if new_elr == partition.elr else list(new_elr),
        last_known_elr=None if last_known == partition.last_known_elr else list(last_known),
    )
    unchanged = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    return None if record == unchanged else record


def _elect(
    partition: Partition,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    acceptable: Callable[[int], bool],
    rules: ElectionRules,
) -> tuple[int, bool]:
    """(leader, whether it is sure to have everything committed)."""
    if partition.leader in isr and acceptable(partition.leader):
        return partition.leader, True
    # Assignment order, because the first replica is the preferred leader.
    for replica in partition.replicas:
        if replica in isr and acceptable(replica):
            return replica, True
    if not isr:
        for replica in partition.replicas:
            if replica in elr and acceptable(replica):
                return replica, True
    if rules.elr_enabled and not isr and not elr and len(partition.last_known_elr) == 1:
        last_known = partition.last_known_elr[0]
        if last_known in partition.replicas and acceptable(last_known):
            return last_known, False
    if rules.unclean_enabled:
        for replica in partition.replicas:
            if acceptable(replica):
                return replica, False
    return NO_LEADER, True


def _eligible(
    partition: Partition,
    isr: tuple[int, ...],
    leader: int,
    rules: ElectionRules,
    unclean_shutdown: Collection[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The new eligible leader replicas and the last known leader."""
    if not rules.elr_enabled:
        return partition.elr, partition.last_known_elr
    if len(isr) >= min(rules.min_isr, len(partition.replicas)):
        return (), ()
    candidates = dict.fromkeys(partition.elr + partition.isr)
    elr = tuple(
        replica for replica in candidates if replica not in isr and replica not in unclean_shutdown
    )
    last_known = partition.last_known_elr
    if not isr and leader == NO_LEADER and partition.leader != NO_LEADER:
        last_known = (partition.leader,)
    return elr, last_known
