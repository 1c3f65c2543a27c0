"""Every event in every role: networks delay and repeat messages, so each may come at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.broker.raft.machine.election_file import Election
from moldau.broker.raft.machine.quorum.events import (
    Answer,
    AnswerChunk,
    Answered,
    AnswerRecords,
    Appended,
    AppendFailed,
    Event,
    PersistElection,
    QuorumChange,
    Received,
    Send,
    ShutDown,
    SnapshotInstalled,
    Started,
    Synced,
    TimePassed,
)
from moldau.broker.raft.machine.rpcs import (
    EndOfEpoch,
    EpochBegun,
    EpochEnded,
    FetchAsked,
    FetchReply,
    Reply,
    Request,
    SnapshotAsked,
    SnapshotReply,
    VersionsAsked,
    VersionsReply,
    VoteAsked,
    VoterAdditionAsked,
    VoteReply,
    VoterRemovalAsked,
    VoterUpdateAsked,
)
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import VoterSet
from moldau.invariant import InvariantError
from moldau.wire.errors import ErrorCode
from support.quorum_subject import (
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

EPOCH = 5
END = 9
SNAPSHOT = SnapshotId(END, EPOCH - 1)


def unattached() -> Subject:
    return Subject(election=Election(epoch=EPOCH), log=FixedLog(END, EPOCH - 1))


def prospective() -> Subject:
    node = unattached()
    node.wait(ELECTION_MS)
    return node


def candidate() -> Subject:
    node = Subject(election=Election(epoch=EPOCH - 1), log=FixedLog(END, EPOCH - 1))
    node.wait(ELECTION_MS)
    node.grant(node.sent(VoteAsked)[0])
    return node


def leader() -> Subject:
    node = Subject(election=Election(epoch=EPOCH - 1), log=FixedLog(END, EPOCH - 1))
    node.lead()
    return node


def follower() -> Subject:
    node = unattached()
    node.follow(epoch=EPOCH)
    return node


def resigned() -> Subject:
    node = leader()
    node.wait(FETCH_MS * 3 // 2)
    return node


ROLES: list[Callable[[], Subject]] = [
    unattached,
    prospective,
    candidate,
    leader,
    follower,
    resigned,
]


def requests(epoch: int) -> list[Request]:
    return [
        *(
            VoteAsked(
                epoch=epoch,
                candidate=TWO,
                voter=target,
                last_epoch=EPOCH - 2,
                end_offset=end_offset,
                pre_vote=pre_vote,
            )
            for pre_vote in (False, True)
            for target in (ONE, THREE, None)
            for end_offset in (END, 0, -1)
        ),
        EpochBegun(epoch=epoch, leader_id=2, voter=ONE, endpoints=voter(TWO).endpoints),
        EpochBegun(epoch=epoch, leader_id=1, voter=ONE),
        EpochEnded(epoch=epoch, leader_id=2, successors=(ONE,), endpoints=voter(TWO).endpoints),
        EpochEnded(epoch=epoch, leader_id=3, successors=()),
        *(
            FetchAsked(
                epoch=epoch,
                replica=replica,
                offset=offset,
                last_epoch=last_epoch,
                high_watermark=0,
                max_wait_ms=0,
                max_bytes=100,
            )
            for replica in (ONE, TWO, FOUR)
            for offset, last_epoch in ((0, 0), (END, EPOCH - 1), (END + 1, EPOCH), (100, EPOCH))
        ),
        SnapshotAsked(epoch=epoch, replica=TWO, snapshot_id=SNAPSHOT, position=0, max_bytes=9),
        VoterAdditionAsked(voter=voter(FOUR)),
        VoterRemovalAsked(voter=TWO),
        VoterUpdateAsked(epoch=epoch, voter=voter(TWO)),
        VersionsAsked(),
    ]


def replies(epoch: int) -> list[Reply]:
    common: dict[str, Any] = {"epoch": epoch, "leader_id": 2, "endpoints": voter(TWO).endpoints}
    return [
        *(
            kind(error=error, **common)
            for kind in (Reply, VoteReply, FetchReply, SnapshotReply, VersionsReply)
            for error in (
                ErrorCode.NONE,
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNSUPPORTED_VERSION,
                ErrorCode.INVALID_VOTER_KEY,
                ErrorCode.SNAPSHOT_NOT_FOUND,
            )
        ),
        VoteReply(epoch=epoch, granted=True),
        VoteReply(epoch=epoch, leader_id=1, granted=True),
        FetchReply(**common, high_watermark=END, records=b"records"),
        FetchReply(**common, diverging=EndOfEpoch(epoch=EPOCH - 1, end_offset=END - 1)),
        FetchReply(**common, snapshot_id=SnapshotId(END + 9, EPOCH)),
        Reply(error=ErrorCode.INVALID_REQUEST),
    ]


OTHER_EVENTS: list[Event] = [
    TimePassed(),
    Appended(),
    Appended(changes=(QuorumChange(offset=END, voters=VoterSet.of([voter(ONE), voter(TWO)])),)),
    AppendFailed(),
    Synced(END),
    Synced(0),
    SnapshotInstalled(snapshot_id=SNAPSHOT, kraft_version=1, voters=None),
    ShutDown(),
]


def events(node: Subject) -> list[Event]:
    found = list(OTHER_EVENTS)
    epochs = (EPOCH - 2, EPOCH, EPOCH + 1, EPOCH + 7)
    found += [Received(token=7, request=each) for epoch in epochs for each in requests(epoch)]
    for sent in node.effects:
        if isinstance(sent, Send):
            found += [
                Answered(request_id=sent.request_id, reply=each)
                for epoch in epochs
                for each in replies(epoch)
            ]
            found.append(Answered(request_id=sent.request_id, reply=None))
            found.append(Answered(request_id=sent.request_id, reply=None, refused=True))
    found.append(Answered(request_id=12345, reply=Reply(epoch=EPOCH)))
    return found


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.__name__)
@pytest.mark.parametrize("delay_ms", [0, 10 * FETCH_MS], ids=["at once", "late"])
def test_every_event_is_legal_in_every_role(role: Callable[[], Subject], delay_ms: int) -> None:
    assert role().state == role.__name__.upper()
    for event in events(role()):
        node = role()
        before = node.machine.election
        effects = node.step(event, later_ms=delay_ms)
        answers = [
            effect.token
            for effect in effects
            if isinstance(effect, Answer | AnswerRecords | AnswerChunk)
        ]
        assert answers in ([], [7]), event
        waits = isinstance(event, Received) and isinstance(event.request, VoterAdditionAsked)
        assert answers or not isinstance(event, Received) or waits, event
        persisted = [x.election for x in effects if isinstance(x, PersistElection)]
        assert [before, *persisted][-1] == node.machine.election, event
        assert node.machine.epoch >= before.epoch


@pytest.mark.parametrize("role", ROLES[1:], ids=lambda role: role.__name__)
def test_a_node_starts_once(role: Callable[[], Subject]) -> None:
    with pytest.raises(InvariantError, match="illegal transition"):
        role().step(Started())
