"""Single decisions of one node of a quorum of three."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum.events import (
    Answered,
    BecomeLeader,
    CommitUpTo,
    PersistElection,
    Received,
    ShutDown,
    StepDown,
    Synced,
    TimePassed,
)
from moldau.broker.raft.machine.quorum.leadership import (
    OBSERVER_SESSION_TIMEOUT_MS,
    Leadership,
)
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Reply,
    VoteAsked,
)
from moldau.broker.raft.machine.voters import ReplicaKey, VoterSet
from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.errors import ErrorCode
from support.quorum_subject import (
    BACKOFF_MS,
    ELECTION_MS,
    FETCH_MS,
    FOUR,
    ONE,
    THREE,
    TWO,
    FixedLog,
    Subject,
    voter,
)


def vote(epoch: int, *, pre_vote: bool = False, end_offset: int = 9, **other: Any) -> VoteAsked:
    fields: dict[str, Any] = {"candidate": TWO, "voter": ONE, "last_epoch": 0} | other
    return VoteAsked(epoch=epoch, end_offset=end_offset, pre_vote=pre_vote, **fields)


def fetch(epoch: int, replica: ReplicaKey, offset: int, last_epoch: int = 0) -> FetchAsked:
    return FetchAsked(
        epoch=epoch,
        replica=replica,
        offset=offset,
        last_epoch=last_epoch,
        high_watermark=0,
        max_wait_ms=0,
        max_bytes=1000,
    )


def test_the_only_voter_leads_at_once_in_a_new_epoch() -> None:
    node = Subject(ONE, election=Election(epoch=4, leader_id=1))
    assert PersistElection(Election(epoch=5, leader_id=1)) in node.effects
    assert any(isinstance(x, BecomeLeader) and x.epoch == 5 for x in node.effects)


def test_a_log_newer_than_the_vote_file_wins() -> None:
    node = Subject(ONE, election=Election(epoch=2), log=FixedLog(9, 7))
    assert node.machine.epoch == 8


def test_the_only_voter_commits_what_it_has_synced_of_its_own_epoch() -> None:
    node = Subject(ONE, log=FixedLog(9, 1))
    assert node.step(Synced(9)) == []
    node.log.end_offset = 12
    assert node.step(Synced(12)) == [CommitUpTo(12)]
    assert node.step(Synced(12)) == []
    assert node.step(Synced(5)) == []
    assert node.machine.high_watermark == 12


def test_the_only_voter_stops_at_once() -> None:
    node = Subject(ONE)
    assert node.step(ShutDown()) == [StepDown(1)]
    assert node.machine.is_finished
    assert node.step(ShutDown()) == []
    assert node.wait(10 * ELECTION_MS) == []


def test_who_is_no_voter_never_stands() -> None:
    node = Subject(TWO, THREE)
    assert node.wait(100 * ELECTION_MS) == []
    assert node.state == "UNATTACHED"


@pytest.mark.parametrize(
    ("key", "expected"),
    [(ONE, True), (ReplicaKey(1), False), (ReplicaKey(1, UUID(int=5)), False), (TWO, False)],
)
def test_a_voter_is_a_node_and_its_folder(key: ReplicaKey, expected: bool) -> None:
    assert (key in VoterSet.of([voter(ONE)])) is expected


def test_voters_survive_their_record() -> None:
    found = VoterSet.of([voter(ONE), voter(TWO)])
    assert VoterSet.from_record(found.to_record()) == found


def test_an_election_is_asked_for_before_it_is_held() -> None:
    node = Subject()
    assert node.wait(ELECTION_MS - 1) == []
    node.wait(1)
    assert node.state == "PROSPECTIVE"
    assert node.machine.epoch == 0
    assert [x.request.pre_vote for x in node.sent(VoteAsked)] == [True, True]
    node.grant(node.sent(VoteAsked)[0])
    assert node.state == "CANDIDATE"
    assert node.effects[0] == PersistElection(Election(epoch=1, voted=ONE))
    assert [x.request.pre_vote for x in node.sent(VoteAsked)] == [False, False]
    node.grant(node.sent(VoteAsked)[1])
    assert node.state == "LEADER"
    assert node.effects[0] == PersistElection(Election(epoch=1, leader_id=1))


def test_a_lost_pre_vote_disturbs_nobody() -> None:
    node = Subject()
    node.follow(epoch=5)
    node.wait(FETCH_MS)
    assert node.state == "PROSPECTIVE"
    for send in node.sent(VoteAsked):
        node.grant(send, granted=False)
    assert node.state == "FOLLOWER"
    assert node.machine.election == Election(epoch=5, leader_id=2)


@pytest.mark.parametrize(
    ("request_", "error", "granted"),
    [
        pytest.param(vote(6), ErrorCode.NONE, True, id="a newer epoch"),
        pytest.param(vote(4), ErrorCode.FENCED_LEADER_EPOCH, False, id="an older epoch"),
        pytest.param(vote(6, end_offset=8), ErrorCode.NONE, False, id="a shorter log"),
        pytest.param(vote(6, end_offset=-1), ErrorCode.INVALID_REQUEST, False, id="no log"),
        pytest.param(vote(6, last_epoch=6), ErrorCode.INVALID_REQUEST, False, id="a future log"),
        pytest.param(vote(6, voter=TWO), ErrorCode.INVALID_VOTER_KEY, False, id="meant another"),
        pytest.param(
            vote(6, voter=ReplicaKey(1, UUID(int=5))),
            ErrorCode.INVALID_VOTER_KEY,
            False,
            id="meant another folder",
        ),
        pytest.param(vote(5, pre_vote=True), ErrorCode.NONE, True, id="a pre-vote"),
    ],
)
def test_votes(request_: VoteAsked, error: ErrorCode, granted: bool) -> None:
    node = Subject(election=Election(epoch=5), log=FixedLog(9, 0))
    reply = node.ask(request_)
    assert (reply.error, reply.granted) == (error, granted)
    promised = granted and not request_.pre_vote
    assert (node.machine.election.voted == TWO) is promised


def test_one_vote_in_an_epoch_also_after_a_restart() -> None:
    node = Subject(election=Election(epoch=6, voted=TWO))
    assert not node.ask(vote(6, candidate=THREE)).granted
    assert node.ask(vote(6, candidate=TWO)).granted


def test_who_follows_a_living_leader_grants_no_pre_vote() -> None:
    node = Subject()
    node.follow(epoch=5)
    node.step(Synced(0))
    assert node.ask(vote(5, pre_vote=True)).granted
    fetching = node.machine.step(TimePassed(), node.now_ms)
    assert fetching == []
    reply = FetchReply(epoch=5, leader_id=2, high_watermark=0)
    node.step(Answered(request_id=1, reply=reply))
    fetch = node.sent(FetchAsked)[0]
    assert not node.ask(vote(5, pre_vote=True)).granted
    node.step(Answered(request_id=fetch.request_id, reply=None))
    assert node.ask(vote(5, pre_vote=True)).granted


def test_a_leader_that_cannot_be_reached_is_given_up_before_the_fetch_timeout() -> None:
    node = Subject()
    node.follow()
    for waited_ms in (0, 100, FETCH_MS // 4 - 100):
        fetch = node.sent(FetchAsked)[0]
        assert node.state == "FOLLOWER"
        node.step(Answered(request_id=fetch.request_id, reply=None), later_ms=waited_ms)
        if node.state == "FOLLOWER":
            node.wait(node.machine.state.settings.retry_backoff_ms)
    assert node.state == "PROSPECTIVE"


def test_voters_stand_one_after_another_when_their_leader_is_gone() -> None:
    turns = []
    for local in (ONE, TWO, FOUR):
        node = Subject(ONE, TWO, THREE, FOUR, local=local)
        node.follow(THREE)
        fetch = node.sent(FetchAsked)[0]
        node.step(Answered(request_id=fetch.request_id, reply=None, refused=True))
        waited_ms = 0
        while node.state == "FOLLOWER":
            waited_ms += 1
            node.wait(1)
        turns.append(waited_ms)
    assert turns == [0, ELECTION_MS // 8, 2 * ELECTION_MS // 8]


def test_an_observer_never_stands_for_a_leader_that_is_gone() -> None:
    node = Subject(TWO, THREE)
    node.follow()
    fetch = node.sent(FetchAsked)[0]
    node.step(Answered(request_id=fetch.request_id, reply=None, refused=True))
    node.wait(FETCH_MS)
    assert node.state == "FOLLOWER"


def test_a_pre_vote_lost_against_a_leader_that_refuses_is_tried_again_soon() -> None:
    node = Subject()
    node.follow()
    for _ in range(3):
        fetch = node.sent(FetchAsked)[0]
        node.step(Answered(request_id=fetch.request_id, reply=None, refused=True))
        assert node.state == "PROSPECTIVE"
        for send in node.sent(VoteAsked):
            # One that still reaches the leader.
            node.grant(send, granted=False)
        assert node.state == "FOLLOWER"


def test_a_split_vote_among_those_who_are_left_is_repeated_one_after_another() -> None:
    """Node two is gone, node three voted for itself: one cannot win this epoch."""
    node = Subject(election=Election(epoch=5))
    node.wait(ELECTION_MS)
    to_two, to_three = node.sent(VoteAsked)
    node.step(Answered(request_id=to_two.request_id, reply=None, refused=True))
    node.grant(to_three)
    assert node.state == "CANDIDATE"
    to_two, to_three = node.sent(VoteAsked)
    node.grant(to_three, granted=False)
    node.step(Answered(request_id=to_two.request_id, reply=None, refused=True))
    assert node.state == "CANDIDATE"
    node.wait(node.machine.state.settings.retry_backoff_ms)
    assert node.state == "PROSPECTIVE"


def test_a_vote_that_was_not_answered_may_still_come() -> None:
    node = Subject(election=Election(epoch=5))
    node.wait(ELECTION_MS)
    to_two, _ = node.sent(VoteAsked)
    node.step(Answered(request_id=to_two.request_id, reply=None, refused=True))
    node.wait(ELECTION_MS - 1)
    assert node.state == "PROSPECTIVE"


def test_a_leader_that_answers_late_is_given_the_whole_fetch_timeout() -> None:
    node = Subject()
    node.follow()
    fetch = node.sent(FetchAsked)[0]
    node.step(Answered(request_id=fetch.request_id, reply=None), later_ms=FETCH_MS - 100)
    assert node.state == "FOLLOWER"
    node.wait(100)
    assert node.state == "PROSPECTIVE"


def test_the_own_epoch_decides_what_is_committed() -> None:
    node = Subject(log=FixedLog(5, 3), election=Election(epoch=3))
    node.lead()
    assert node.machine.epoch == 4
    node.step(Received(token=1, request=fetch(4, TWO, 5, 3)))
    assert not any(isinstance(x, CommitUpTo) for x in node.effects)
    node.step(Received(token=2, request=fetch(4, TWO, 6, 4)))
    assert CommitUpTo(6) in node.effects


def test_a_leader_nobody_follows_resigns_and_names_successors() -> None:
    node = Subject()
    node.lead()
    node.step(Received(token=1, request=fetch(1, THREE, 1, 1)))
    node.wait(FETCH_MS * 3 // 2)
    assert node.state == "RESIGNED"
    assert StepDown(1) in node.effects
    assert [x.request.successors for x in node.sent(EpochEnded)] == [(THREE, TWO)] * 2
    node.wait(ELECTION_MS)
    assert (node.state, node.machine.epoch) == ("PROSPECTIVE", 2)


def test_a_leader_that_stops_says_so() -> None:
    node = Subject()
    node.lead()
    node.step(ShutDown())
    assert not node.machine.is_finished
    for send in node.sent(EpochEnded):
        node.step(Answered(request_id=send.request_id, reply=Reply(epoch=1, leader_id=1)))
    assert node.machine.is_finished


@pytest.mark.parametrize(
    ("successors", "backoff_ms"),
    [((ONE, THREE), 0), ((THREE, ONE), BACKOFF_MS // 2), ((THREE,), BACKOFF_MS)],
    ids=["first", "second", "not named"],
)
def test_successors_stand_one_after_the_other(
    successors: tuple[ReplicaKey, ...], backoff_ms: int
) -> None:
    node = Subject()
    node.follow(epoch=5)
    node.ask(EpochEnded(epoch=5, leader_id=2, successors=successors))
    if backoff_ms:
        assert node.state == "FOLLOWER"
        node.wait(backoff_ms)
    assert node.state == "PROSPECTIVE"


@pytest.mark.parametrize(
    ("epoch", "replica", "error"),
    [
        (0, TWO, ErrorCode.FENCED_LEADER_EPOCH),
        (2, TWO, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, ONE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_fetches_that_are_refused(epoch: int, replica: ReplicaKey, error: ErrorCode) -> None:
    node = Subject()
    node.lead()
    assert node.ask(fetch(epoch, replica, 0)).error is error


def test_who_does_not_lead_says_who_does() -> None:
    node = Subject()
    node.follow(epoch=5)
    reply = node.ask(fetch(5, THREE, 0))
    assert (reply.error, reply.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    assert reply.endpoints == voter(TWO).endpoints


def test_a_diverging_log_is_told_where() -> None:
    node = Subject(log=FixedLog(5, 3), election=Election(epoch=3))
    node.lead()
    reply = node.ask(fetch(4, TWO, 9, 4))
    assert reply.diverging == EndOfEpoch(epoch=4, end_offset=6)


def test_observers_that_come_and_go_do_not_add_up() -> None:
    voters = VoterSet.of([voter(ONE)])
    leadership = Leadership(
        ONE, 1, voters, epoch_start_offset=0, fetch_timeout_ms=1000, now_ms=ELAPSED_ZERO
    )
    now_ms = ELAPSED_ZERO
    for number in range(100):
        now_ms = ElapsedMs(number * OBSERVER_SESSION_TIMEOUT_MS // 10)
        leadership.fetched(ReplicaKey(2, UUID(int=number)), 0, 0, now_ms)
    assert len(leadership._observers) == 10
    assert len(leadership.observer_progress(now_ms)) == 10
