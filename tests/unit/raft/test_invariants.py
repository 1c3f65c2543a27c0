"""What one node can check of Raft's invariants is checked: each violation stops the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum.events import Answered, SnapshotInstalled, Synced
from moldau.broker.raft.machine.quorum.leadership import Leadership
from moldau.broker.raft.machine.quorum.outbox import Outbox
from moldau.broker.raft.machine.quorum.role_changes import RoleChanges
from moldau.broker.raft.machine.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Resigned,
    Role,
    Unattached,
)
from moldau.broker.raft.machine.quorum.state import QuorumState, check_agreement, check_election
from moldau.broker.raft.machine.quorum.timeouts import Timeouts
from moldau.broker.raft.machine.quorum.transitions import Cause
from moldau.broker.raft.machine.quorum.voter_changes import VoterChanges
from moldau.broker.raft.machine.quorum.voter_requests import check_voter_change
from moldau.broker.raft.machine.quorum.voting import Tally
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Peer,
    Reply,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voter_history import VoterHistory
from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet
from moldau.invariant import InvariantError
from moldau.times import ELAPSED_ZERO, ElapsedMs
from support.quorum_subject import FOUR, ONE, THREE, TWO, FixedLog, Subject, voter

LATER = ElapsedMs(1000)
VOTERS = VoterSet.of(voter(key) for key in (ONE, TWO, THREE))


def leader() -> Leader:
    leadership = Leadership(
        ONE, 5, VOTERS, epoch_start_offset=0, fetch_timeout_ms=1, now_ms=ELAPSED_ZERO
    )
    return Leader(leadership, VoterChanges(VoterHistory(VOTERS)))


def state_of(*, election: Election | None = None, log: FixedLog | None = None) -> QuorumState:
    return Subject(election=election or Election(epoch=5), log=log).machine.state


# Roles --------------------------------------------------------------------------------------


def test_a_role_is_entered_only_as_the_table_allows() -> None:
    state = state_of()
    with pytest.raises(InvariantError, match="illegal transition from unattached"):
        state.enter(leader(), Cause.ELECTION_WON, Election(epoch=5, leader_id=1))
    assert isinstance(state.role, Unattached)
    assert state.election == Election(epoch=5)


@pytest.mark.parametrize(
    ("role", "election"),
    [
        pytest.param(leader(), Election(epoch=5, leader_id=2), id="leads another's epoch"),
        pytest.param(leader(), Election(epoch=5), id="leads an epoch without a leader"),
        pytest.param(
            Resigned(LATER, set(), ()), Election(epoch=5, leader_id=2), id="resigns for another"
        ),
        pytest.param(Follower(LATER, LATER), Election(epoch=5, leader_id=1), id="follows itself"),
        pytest.param(Follower(LATER, LATER), Election(epoch=5), id="follows no node"),
        pytest.param(Candidate(LATER, Tally(VOTERS)), Election(epoch=5), id="has not voted"),
        pytest.param(
            Candidate(LATER, Tally(VOTERS)),
            Election(epoch=5, voted=TWO),
            id="stands and votes for another",
        ),
        pytest.param(
            Candidate(LATER, Tally(VOTERS)),
            Election(epoch=5, leader_id=2, voted=ONE),
            id="stands in an epoch that has a leader",
        ),
    ],
)
def test_a_role_agrees_with_the_election(role: Role, election: Election) -> None:
    with pytest.raises(InvariantError, match="node 1 is"):
        check_agreement(role, election, ONE)


def test_only_a_majority_makes_a_leader() -> None:
    node = Subject()
    state, outbox = node.machine.state, Outbox(20)
    roles = RoleChanges(state, outbox, Timeouts(state.settings, lambda bound: 0))
    roles.to_prospective(Cause.ELECTION_TIMEOUT)
    roles.to_candidate()
    with pytest.raises(InvariantError, match="no majority has elected this node in epoch 1"):
        roles.to_leader()


def test_only_a_voter_stands_for_election() -> None:
    node = Subject(TWO, THREE)
    state = node.machine.state
    roles = RoleChanges(state, Outbox(20), Timeouts(state.settings, lambda bound: 0))
    with pytest.raises(InvariantError, match="only a voter"):
        roles.to_prospective(Cause.ELECTION_TIMEOUT)


# Epochs and votes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param(Election(epoch=5), Election(epoch=4), "the epoch goes back", id="epoch"),
        pytest.param(
            Election(epoch=5, leader_id=2),
            Election(epoch=5, leader_id=3),
            "the leader of epoch 5 changes",
            id="another leader",
        ),
        pytest.param(
            Election(epoch=5, leader_id=2),
            Election(epoch=5),
            "the leader of epoch 5 changes",
            id="a leader forgotten",
        ),
        pytest.param(
            Election(epoch=5, voted=TWO),
            Election(epoch=5, voted=THREE),
            "a second vote",
            id="another vote",
        ),
        pytest.param(
            Election(epoch=5, voted=TWO), Election(epoch=5), "a second vote", id="a vote forgotten"
        ),
        pytest.param(
            Election(epoch=5, leader_id=2),
            Election(epoch=5, leader_id=2, voted=THREE),
            "a second vote",
            id="a vote in an epoch that has a leader",
        ),
    ],
)
def test_elections_that_contradict_each_other(
    before: Election, after: Election, message: str
) -> None:
    with pytest.raises(InvariantError, match=message):
        check_election(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Election(epoch=5, voted=TWO), Election(epoch=6, voted=THREE)),
        (Election(epoch=5), Election(epoch=5, voted=THREE)),
        (Election(epoch=5, voted=TWO), Election(epoch=5, leader_id=3, voted=TWO)),
        (Election(epoch=5, voted=ONE), Election(epoch=5, leader_id=1)),
    ],
    ids=["a new epoch", "the first vote", "another was elected", "elected itself"],
)
def test_elections_that_follow_each_other(before: Election, after: Election) -> None:
    check_election(before, after)


def test_a_node_votes_once() -> None:
    state = state_of()
    state.record_vote(TWO)
    with pytest.raises(InvariantError, match="a second vote in epoch 5"):
        state.record_vote(THREE)
    assert state.election.voted == TWO


def _answer(outbox: Outbox) -> None:
    outbox.answer(1, Reply(epoch=5))


def _send(outbox: Outbox) -> None:
    request = EpochEnded(epoch=5, leader_id=1, successors=())
    outbox.send(Peer(id=2, host="node-2", port=2), request, ELAPSED_ZERO)


@pytest.mark.parametrize("say", [_answer, _send], ids=["response", "request"])
def test_a_vote_is_persisted_before_it_is_sent(say: Callable[[Outbox], None]) -> None:
    outbox = Outbox(20)
    say(outbox)
    outbox.persist(Election(epoch=6))
    with pytest.raises(InvariantError, match="persisted after a message of its epoch"):
        outbox.persist(Election(epoch=5, voted=TWO))


# The log ------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [3, 10], ids=["back", "past the log end offset"])
def test_the_high_watermark_stays_within_bounds(offset: int) -> None:
    state = state_of(log=FixedLog(9, 5))
    state.raise_high_watermark(4)
    with pytest.raises(InvariantError, match=f"the high watermark goes from 4 to {offset}"):
        state.raise_high_watermark(offset)
    assert state.high_watermark == 4


def test_no_more_is_synced_than_the_log_holds() -> None:
    node = Subject(log=FixedLog(9, 0))
    with pytest.raises(InvariantError, match="synced up to 10, but the log ends at 9"):
        node.step(Synced(10))


def test_what_is_committed_is_never_truncated() -> None:
    node = Subject(log=FixedLog(9, 3))
    node.follow(epoch=5)
    node.step(Synced(9))
    node.machine.state.raise_high_watermark(7)
    sent = node.sent(FetchAsked)[0]
    diverging = FetchReply(
        epoch=5, leader_id=2, diverging=EndOfEpoch(epoch=3, end_offset=6), high_watermark=6
    )
    with pytest.raises(InvariantError, match="truncated to 6, but 7 is committed"):
        node.step(Answered(request_id=sent.request_id, reply=diverging))


def test_a_snapshot_never_replaces_what_is_committed_after_it() -> None:
    node = Subject(log=FixedLog(9, 3))
    node.machine.state.raise_high_watermark(7)
    old = SnapshotInstalled(snapshot_id=SnapshotId(6, 3), kraft_version=1, voters=VOTERS)
    with pytest.raises(InvariantError, match=r"a snapshot up to 6 .* but 7 is committed"):
        node.step(old)


# Voters -------------------------------------------------------------------------------------


def test_a_leader_commits_by_the_voters_of_its_log() -> None:
    node = Subject()
    node.lead()
    role = node.machine.role
    assert isinstance(role, Leader)
    role.leadership.set_voters(VoterSet.of([voter(ONE)]), ELAPSED_ZERO)
    with pytest.raises(InvariantError, match="the voters of the log"):
        node.step(Synced(node.log.end_offset))


@pytest.mark.parametrize(
    "after",
    [
        pytest.param((ONE,), id="two removed"),
        pytest.param((ONE, TWO, FOUR), id="one replaced by another"),
        pytest.param((ONE, TWO, ReplicaKey(3)), id="one replaced by another directory of its node"),
        pytest.param((), id="all removed"),
    ],
)
def test_voters_change_one_at_a_time(after: tuple[ReplicaKey, ...]) -> None:
    with pytest.raises(InvariantError, match="more than one voter changes at once"):
        check_voter_change(VOTERS, VoterSet.of(voter(key) for key in after))


@pytest.mark.parametrize("after", [(ONE, TWO), (ONE, TWO, THREE), (ONE, TWO, THREE, FOUR)])
def test_one_voter_may_change(after: tuple[ReplicaKey, ...]) -> None:
    check_voter_change(VOTERS, VoterSet.of(voter(key) for key in after))


def test_voter_sets_come_in_the_order_of_the_log() -> None:
    history = VoterHistory(VOTERS)
    history.add_voters(7, VOTERS)
    with pytest.raises(InvariantError):
        history.add_voters(6, VOTERS)
