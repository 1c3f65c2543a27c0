"""How a partition's leader, ISR, eligible leader replicas and assignment change together.

A clean leader comes from the ISR or, when that is empty, from the eligible leader replicas
(KIP-966). Any other election is unclean: the ISR becomes that leader alone and the partition is
marked RECOVERING. Without eligible leader replicas the ISR keeps its last member, so that the
metadata records which replica has the data. A reassignment is complete as soon as all replicas that
it adds are in sync; the same record removes the others.

Invariants (`check_change`): a leader is in the ISR; the ISR, and the replicas that a reassignment
adds and removes, are among the replicas; no replica is both in the ISR and eligible; the leader
epoch never decreases, and the partition epoch increases with every change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from moldau.broker.metadata.machine.model import (
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    Partition,
)
from moldau.invariant import InvariantError
from moldau.wire.messages import PartitionChangeRecord


class Election(Enum):
    """PREFERRED: the first replica if it can. ONLINE: only a replica that has everything committed.
    UNCLEAN: any replica rather than none."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRules:
    """The topic's and cluster's settings that decide an election.

    `min_isr` is the effective minimum, no more than a partition of the topic has replicas. Before
    metadata.version 3.6-IV0 brokers needed a new leader epoch when the ISR shrank, and before
    3.7-IV2 records had no directories.
    """

    min_isr: int = 1
    elr_enabled: bool = True
    unclean_enabled: bool = False
    new_epoch_on_shrink: bool = False
    directories_known: bool = True


@dataclass(slots=True, kw_only=True)
class Target:
    """What a partition is to become; None leaves a part as it is."""

    isr: Collection[int] | None = None
    replicas: Collection[int] | None = None
    adding: Collection[int] | None = None
    removing: Collection[int] | None = None
    recovery_state: LeaderRecoveryState | None = None
    directories: Mapping[int, UUID] | None = None


@dataclass(slots=True)
class _Draft:
    """A partition on its way to the target."""

    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    elr: tuple[int, ...] = ()


def change_partition(
    partition: Partition,
    *,
    topic_id: UUID,
    index: int,
    acceptable: Callable[[int], bool],
    rules: ElectionRules,
    isr: Collection[int] | None = None,
    target: Target | None = None,
    election: Election | None = None,
    unclean_shutdown: Collection[int] = (),
    default_directory: Callable[[int], UUID] = lambda replica: DIRECTORY_UNASSIGNED,
) -> PartitionChangeRecord | None:
    """The record that brings `partition` to its target with a leader to match, None if all stays.

    `acceptable` says which replicas may lead now. Replicas in `unclean_shutdown` may have lost
    data and are no longer eligible. The kind of `election` is the topic's unless given.
    """
    target = Target() if target is None else target
    if election is None:
        election = Election.UNCLEAN if rules.unclean_enabled else Election.ONLINE
    wanted_isr = isr if isr is not None else _or(target.isr, partition.isr)
    draft = _Draft(
        isr=tuple(replica for replica in wanted_isr if replica not in unclean_shutdown),
        replicas=_or(target.replicas, partition.replicas),
        adding=_or(target.adding, partition.adding_replicas),
        removing=_or(target.removing, partition.removing_replicas),
    )
    _complete_reassignment(draft)
    draft.elr = _eligible(partition, draft, rules, unclean_shutdown)
    leader, clean = _elect(partition, draft, acceptable, rules, election)
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    _set_leader(record, partition, draft, leader, clean=clean)
    _set_isr(record, partition, draft, rules)
    _set_last_known_leader(record, partition, rules)
    _set_assignment(record, partition, draft, target.directories, default_directory, rules)
    state = target.recovery_state
    if state is not None and state != partition.leader_recovery_state:
        record.leader_recovery_state = int(state)
    return None if _changes_nothing(record) else record


def check_change(name: str, before: Partition, after: Partition) -> None:
    """Raise InvariantError if `after` breaks a rule that `before` keeps."""
    broken = _broken_rule(after)
    # A partition that came from elsewhere in a bad state must stay changeable.
    if broken is not None and _broken_rule(before) is None:
        raise InvariantError(f"{name} would have {broken}: {after}")
    if after.leader_epoch < before.leader_epoch or after.partition_epoch <= before.partition_epoch:
        raise InvariantError(
            f"{name} would go back from epoch {before.leader_epoch}, {before.partition_epoch}"
            f" to {after.leader_epoch}, {after.partition_epoch}"
        )


def _broken_rule(partition: Partition) -> str | None:
    replicas, isr = set(partition.replicas), set(partition.isr)
    if partition.leader != NO_LEADER and partition.leader not in isr:
        return "a leader outside the ISR"
    if not isr <= replicas:
        return "an ISR with other brokers than its replicas"
    if not replicas.issuperset((*partition.adding_replicas, *partition.removing_replicas)):
        return "a reassignment of other brokers than its replicas"
    if not isr.isdisjoint(partition.elr):
        return "an eligible leader replica in the ISR"
    return None


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.leader_recovery_state == -1
        and record.directories is None
    )


def _or(wanted: Collection[int] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if wanted is None else tuple(wanted)


def _complete_reassignment(draft: _Draft) -> None:
    if not draft.adding and not draft.removing:
        return
    isr = tuple(replica for replica in draft.isr if replica not in draft.removing)
    replicas = tuple(replica for replica in draft.replicas if replica not in draft.removing)
    if draft.removing and (not isr or not replicas):
        return
    if not set(draft.adding) <= set(isr):
        return
    if len(draft.adding) < len(draft.removing) and not set(replicas) <= set(isr):
        # With fewer replicas in the end, those that leave may be most of the ISR: they wait until
        # all that stay are in sync.
        return
    draft.isr, draft.replicas = isr, replicas
    draft.adding = draft.removing = ()


def _eligible(
    partition: Partition,
    draft: _Draft,
    rules: ElectionRules,
    unclean_shutdown: Collection[int],
) -> tuple[int, ...]:
    """The replicas that were in sync when the ISR fell below its minimum, and so have everything
    committed.

    A broker that is no longer a replica deletes its log, so it must not be eligible if it ever
    becomes one again.
    """
    if not rules.elr_enabled:
        return partition.elr
    if len(draft.isr) >= rules.min_isr:
        return ()
    candidates = {*partition.elr, *partition.isr}.intersection(draft.replicas)
    return tuple(sorted(candidates.difference(draft.isr, unclean_shutdown)))


def _elect(
    partition: Partition,
    draft: _Draft,
    acceptable: Callable[[int], bool],
    rules: ElectionRules,
    election: Election,
) -> tuple[int, bool]:
    """(leader, whether it is sure to have everything committed)."""
    sure = draft.isr or draft.elr

    def valid(replica: int) -> bool:
        return replica in sure and acceptable(replica)

    # Assignment order, because the first replica is the preferred leader.
    order = (partition.leader, *draft.replicas)
    if election == Election.PREFERRED:
        order = (draft.replicas[0], *order)
    for replica in order:
        if valid(replica):
            return replica, True
    if rules.elr_enabled and not sure and len(partition.last_known_elr) == 1:
        last_known = partition.last_known_elr[0]
        if acceptable(last_known):
            return last_known, False
    if election == Election.UNCLEAN:
        for replica in draft.replicas:
            if acceptable(replica):
                return replica, False
    return NO_LEADER, True


def _set_leader(
    record: PartitionChangeRecord,
    partition: Partition,
    draft: _Draft,
    leader: int,
    *,
    clean: bool,
) -> None:
    if leader != partition.leader:
        record.leader = leader
        if leader in draft.elr:
            draft.isr = (leader,)
            draft.elr = tuple(replica for replica in draft.elr if replica != leader)
        if not clean:
            record.isr = [leader]
            draft.elr = ()
            if partition.leader_recovery_state != LeaderRecoveryState.RECOVERING:
                record.leader_recovery_state = int(LeaderRecoveryState.RECOVERING)
    elif not set(partition.replicas) <= set(draft.replicas):
        # Replicas that leave must not be taken for followers of this epoch any more.
        record.leader = leader


def _set_isr(
    record: PartitionChangeRecord, partition: Partition, draft: _Draft, rules: ElectionRules
) -> None:
    elr = draft.elr if rules.elr_enabled else ()
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    if record.isr is None and (draft.isr or rules.elr_enabled) and draft.isr != partition.isr:
        record.isr = list(draft.isr)
    if (
        rules.new_epoch_on_shrink
        and record.leader == NO_LEADER_CHANGE
        and record.isr is not None
        and not set(partition.isr) <= set(record.isr)
    ):
        record.leader = partition.leader


def _set_last_known_leader(
    record: PartitionChangeRecord, partition: Partition, rules: ElectionRules
) -> None:
    """Record the last leader while there is none."""
    if not rules.elr_enabled:
        return
    if record.leader == NO_LEADER:
        if not partition.last_known_elr and partition.leader != NO_LEADER:
            record.last_known_elr = [partition.leader]
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _set_assignment(
    record: PartitionChangeRecord,
    partition: Partition,
    draft: _Draft,
    moved: Mapping[int, UUID] | None,
    default_directory: Callable[[int], UUID],
    rules: ElectionRules,
) -> None:
    if rules.directories_known and (draft.replicas != partition.replicas or moved):
        known = dict(zip(partition.replicas, partition.directories, strict=True)) | dict(
            moved or {}
        )
        directories = tuple(
            known[replica] if replica in known else default_directory(replica)
            for replica in draft.replicas
        )
        if directories != partition.directories:
            record.directories = list(directories)
    if draft.replicas != partition.replicas:
        record.replicas = list(draft.replicas)
    if draft.removing != partition.removing_replicas:
        record.removing_replicas = list(draft.removing)
    if draft.adding != partition.adding_replicas:
        record.adding_replicas = list(draft.adding)
