"""Who leads and what is committed."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.raft.events import (
    Appended,
    BecomeLeader,
    CommitUpTo,
    ElectionTimedOut,
    PersistElection,
    RequestVotes,
    ShutDown,
    Started,
    StepDown,
    Synced,
    VoteAnswered,
    VotersChanged,
)
from moldau.broker.raft.machine import QuorumMachine, QuorumState
from moldau.broker.raft.quorum_state import Election
from moldau.broker.raft.voters import ReplicaKey, Voter, VoterSet

ONE, TWO, THREE = (ReplicaKey(i, UUID(int=i * 100)) for i in (1, 2, 3))


def voters(*keys: ReplicaKey) -> VoterSet:
    return VoterSet.of(Voter(key=key) for key in keys)


def machine(*keys: ReplicaKey, election: Election | None = None) -> QuorumMachine:
    return QuorumMachine(ONE, voters(*keys), election or Election())


def test_the_only_voter_leads_at_once_in_a_new_epoch() -> None:
    node = machine(ONE, election=Election(epoch=4, leader_id=1))
    effects = node.step(Started(end_offset=9, last_epoch=4))
    assert effects == [
        PersistElection(Election(epoch=5, leader_id=1)),
        BecomeLeader(epoch=5, voters=(ONE,), granting=(ONE,)),
    ]


def test_a_log_newer_than_the_vote_file_wins() -> None:
    node = machine(ONE, election=Election(epoch=2))
    node.step(Started(end_offset=9, last_epoch=7))
    assert node.epoch == 8


def test_the_only_voter_commits_what_it_has_synced_of_its_own_epoch() -> None:
    node = machine(ONE)
    node.step(Started(end_offset=9, last_epoch=1))
    assert node.step(Synced(replica=ONE, end_offset=9)) == []
    node.step(Appended(12))
    assert node.step(Synced(replica=ONE, end_offset=12)) == [CommitUpTo(12)]
    assert node.step(Synced(replica=ONE, end_offset=12)) == []
    assert node.step(Synced(replica=ONE, end_offset=5)) == []
    assert node.high_watermark == 12


def test_three_voters_vote_and_commit_by_majority() -> None:
    node = machine(ONE, TWO, THREE)
    assert node.step(Started(end_offset=5, last_epoch=3)) == []
    assert node.state is QuorumState.UNATTACHED
    assert node.step(ElectionTimedOut()) == [
        PersistElection(Election(epoch=4, voted=ONE)),
        RequestVotes(epoch=4, voters=(TWO, THREE)),
    ]
    assert node.step(VoteAnswered(voter=TWO, epoch=4, granted=False)) == []
    assert node.step(VoteAnswered(voter=TWO, epoch=3, granted=True)) == []
    stranger = ReplicaKey(3, UUID(int=999))
    assert node.step(VoteAnswered(voter=stranger, epoch=4, granted=True)) == []
    assert node.step(VoteAnswered(voter=THREE, epoch=4, granted=True)) == [
        PersistElection(Election(epoch=4, leader_id=1)),
        BecomeLeader(epoch=4, voters=(ONE, TWO, THREE), granting=(ONE, THREE)),
    ]
    node.step(Appended(6))
    assert node.step(Synced(replica=ONE, end_offset=6)) == []
    # Five is an older epoch's last entry: a majority of that alone commits nothing.
    assert node.step(Synced(replica=TWO, end_offset=5)) == []
    assert node.step(Synced(replica=THREE, end_offset=6)) == [CommitUpTo(6)]


def test_a_candidate_tries_again_in_the_next_epoch() -> None:
    node = machine(ONE, TWO, THREE)
    node.step(Started(end_offset=0, last_epoch=0))
    node.step(ElectionTimedOut())
    node.step(ElectionTimedOut())
    assert node.epoch == 2
    assert node.step(VoteAnswered(voter=TWO, epoch=1, granted=True)) == []


def test_who_is_no_voter_never_stands() -> None:
    node = machine(TWO, THREE)
    node.step(Started(end_offset=0, last_epoch=0))
    assert node.step(ElectionTimedOut()) == []


def test_a_leader_steps_down_once() -> None:
    node = machine(ONE)
    node.step(Started(end_offset=0, last_epoch=0))
    assert node.step(ShutDown()) == [StepDown(1)]
    assert node.step(ShutDown()) == []
    assert node.step(ElectionTimedOut()) == []


def test_a_removed_leader_steps_down() -> None:
    node = machine(ONE)
    node.step(Started(end_offset=0, last_epoch=0))
    assert node.step(VotersChanged(voters(TWO))) == [StepDown(1)]


def test_a_smaller_quorum_may_commit_what_waited() -> None:
    node = machine(ONE, TWO, THREE)
    node.step(Started(end_offset=0, last_epoch=0))
    node.step(ElectionTimedOut())
    node.step(VoteAnswered(voter=TWO, epoch=1, granted=True))
    node.step(Appended(3))
    assert node.step(Synced(replica=ONE, end_offset=3)) == []
    assert node.step(VotersChanged(voters(ONE))) == [CommitUpTo(3)]


@given(
    count=st.integers(1, 5),
    synced=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 30)), max_size=40),
)
def test_the_watermark_is_what_a_majority_has_and_never_retreats(
    count: int, synced: list[tuple[int, int]]
) -> None:
    keys = [ReplicaKey(i) for i in range(1, count + 1)]
    node = QuorumMachine(keys[0], voters(*keys), Election())
    node.step(Started(end_offset=0, last_epoch=0))
    if count > 1:
        node.step(ElectionTimedOut())
        for key in keys[1:]:
            node.step(VoteAnswered(voter=key, epoch=1, granted=True))
    assert node.is_leader
    reached = dict.fromkeys(range(1, count + 1), 0)
    before = 0
    for replica, offset in synced:
        effects = node.step(Synced(replica=ReplicaKey(replica), end_offset=offset))
        if replica in reached:
            reached[replica] = max(reached[replica], offset)
        holders = [i for i in reached if reached[i] >= node.high_watermark]
        assert len(holders) * 2 > count
        better = [i for i in reached if reached[i] > node.high_watermark]
        assert len(better) * 2 <= count
        assert node.high_watermark >= before
        assert effects == (
            [] if node.high_watermark == before else [CommitUpTo(node.high_watermark)]
        )
        before = node.high_watermark


@pytest.mark.parametrize(
    ("key", "expected"),
    [(ONE, True), (ReplicaKey(1), False), (ReplicaKey(1, UUID(int=5)), False), (TWO, False)],
)
def test_a_voter_is_a_node_and_its_folder(key: ReplicaKey, expected: bool) -> None:
    assert (key in voters(ONE)) is expected


def test_voters_survive_their_record() -> None:
    found = voters(ONE, TWO)
    assert VoterSet.from_record(found.to_record()) == found
