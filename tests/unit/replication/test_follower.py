"""What a follower asks of its leader, and what it does with the answers."""

from __future__ import annotations

import pytest

from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.broker.replication.machine.fetch_response import decode_fetch_response
from moldau.broker.replication.machine.fetch_session import FollowerFetchSession, SessionRequest
from moldau.broker.replication.machine.follower import FetchedPartition, Fetcher, Phase
from moldau.wire.codec import encode
from moldau.wire.errors import ApiError, ErrorCode, WireError
from moldau.wire.messages import FetchResponse
from moldau.wire.uuids import random_uuid
from support.replication_model import KEY, MemoryLog

OTHER = (bytes(16), 1)
BACKOFF_MS = 10


class FailingLog(MemoryLog):
    code = ErrorCode.NONE

    def append_fetched(self, records: object, *, leader_epoch: int) -> int:
        if self.code is not ErrorCode.NONE:
            raise ApiError(self.code, "planted")
        return super().append_fetched(records, leader_epoch=leader_epoch)


def log_of(*epochs: int, high_watermark: int = 0) -> FailingLog:
    log = FailingLog(high_watermark=high_watermark)
    for number, epoch in enumerate(epochs):
        log.append(epoch, number)
    return log


class Stage:
    """One fetcher of one partition, its requests answered by hand."""

    def __init__(
        self,
        log: MemoryLog,
        leader_epoch: int = 5,
        throttled: bool = False,
        backoff_ms: int = BACKOFF_MS,
    ) -> None:
        self.log = log
        self.throttled = throttled
        self.failures: list[str] = []
        self.fetcher = Fetcher(
            backoff_ms=lambda: backoff_ms,
            max_bytes=lambda: 100,
            is_throttled=lambda key: self.throttled,
            on_failed=lambda key, reason: self.failures.append(reason),
        )
        self.fetcher.add(KEY, "t", log, leader_epoch=leader_epoch)

    def request(self, now_ms: int = 0) -> SessionRequest | None:
        return self.fetcher.request(now_ms)

    def answer(self, fetched: FetchedPartition | None = None, now_ms: int = 0) -> None:
        self.fetcher.on_response(
            error=ErrorCode.NONE,
            session_id=9,
            partitions={} if fetched is None else {KEY: fetched},
            now_ms=now_ms,
        )


def wanted(offset: int, last_epoch: int, leader_epoch: int = 5) -> PartitionFetch:
    return PartitionFetch(0, leader_epoch, offset, last_epoch, 0, 100)


def test_the_life_of_a_session() -> None:
    stage = Stage(log_of(3))
    assert stage.request() == (0, 0, {KEY: wanted(1, 3)}, ())
    records = [(3, 7), (5, 8)]
    stage.answer(FetchedPartition(high_watermark=2, log_start_offset=0, records=records))  # type: ignore[arg-type]
    assert (stage.log.log_end_offset, stage.log.high_watermark) == (3, 2)
    assert stage.request() == (9, 1, {KEY: wanted(3, 5)}, ())
    stage.answer()
    # Nothing new: nothing has to be named.
    assert stage.request() == (9, 2, {}, ())


def test_what_a_session_forgets_and_adds() -> None:
    stage = Stage(log_of(3))
    stage.fetcher.add(OTHER, "t", log_of(3), leader_epoch=5)
    stage.request()
    stage.answer()
    stage.fetcher.remove(KEY)
    assert stage.request() == (9, 1, {}, (KEY,))
    stage.answer()
    stage.fetcher.remove(OTHER)
    assert stage.request() is None
    stage.fetcher.add(KEY, "t", stage.log, leader_epoch=6)
    # The old session is named once more, so that the leader may drop it.
    assert stage.request() == (9, 0, {KEY: wanted(1, 3, 6)}, ())


@pytest.mark.parametrize(
    ("error", "next_head"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, (0, 0)),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, (9, 0)),
    ],
)
def test_a_lost_session_begins_anew(error: ErrorCode, next_head: tuple[int, int]) -> None:
    session = FollowerFetchSession()
    session.request({KEY: wanted(0, 1)}, ())
    assert session.answered(ErrorCode.NONE, 9)
    assert session.request({}, ())[:2] == (9, 1)
    assert not session.answered(error, 0)
    assert session.is_full_next
    assert session.request({KEY: wanted(0, 1)}, ())[:3] == (*next_head, {KEY: wanted(0, 1)})


def test_a_log_that_knows_no_epochs_keeps_only_what_is_committed() -> None:
    log = log_of(3, 3, 3, high_watermark=1)
    log.epochs.clear()
    stage = Stage(log)
    assert stage.request() == (0, 0, {KEY: wanted(1, -1)}, ())


@pytest.mark.parametrize(
    ("epochs", "diverging", "end"),
    [
        pytest.param((1, 1, 3, 3), (3, 3), 3, id="the leader's epoch ended before"),
        pytest.param((1, 1, 3, 3), (2, 9), 2, id="an epoch unknown here: back to the one before"),
        pytest.param((1, 1, 3, 3), (1, 1), 1, id="an older epoch, shorter at the leader"),
        pytest.param((1, 1, 3, 3), (1, 9), 2, id="an older epoch, shorter here"),
        pytest.param((3, 3), (3, 9), 2, id="nothing to cut"),
    ],
)
def test_where_the_log_is_cut(
    epochs: tuple[int, ...], diverging: tuple[int, int], end: int
) -> None:
    stage = Stage(log_of(*epochs))
    stage.request()
    stage.answer(FetchedPartition(high_watermark=9, diverging_epoch=diverging))
    # Nothing of what the answer says of watermarks counts before the logs agree.
    assert (stage.log.log_end_offset, stage.log.high_watermark) == (end, 0)
    state = stage.fetcher.state(KEY)
    assert state is not None
    assert (state.fetch_offset, state.last_fetched_epoch) == (end, stage.log.latest_epoch)


def test_an_epoch_without_records_is_forgotten_too() -> None:
    log = log_of(3)
    log.epochs.assign(4, 1)
    stage = Stage(log)
    assert stage.request() == (0, 0, {KEY: wanted(1, 4)}, ())
    stage.answer(FetchedPartition(diverging_epoch=(3, 5)))
    assert stage.request() == (9, 1, {KEY: wanted(1, 3)}, ())


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_an_error_that_passes_is_waited_out(error: ErrorCode) -> None:
    stage = Stage(log_of(3))
    stage.request()
    stage.answer(FetchedPartition(error), now_ms=100)
    assert stage.fetcher.next_due_ms() == 100 + BACKOFF_MS
    assert stage.request(now_ms=109) is None
    assert stage.request(now_ms=110) == (9, 0, {KEY: wanted(1, 3)}, ())


def test_a_leader_that_does_not_know_it_yet_is_asked_again_soon() -> None:
    stage = Stage(log_of(3), backoff_ms=1000)
    now_ms, pauses = 0, []
    for _ in range(9):
        stage.request(now_ms)
        stage.answer(FetchedPartition(ErrorCode.UNKNOWN_LEADER_EPOCH), now_ms=now_ms)
        due_ms = stage.fetcher.next_due_ms()
        assert due_ms is not None
        pauses.append(due_ms - now_ms)
        now_ms = due_ms
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]
    # Another epoch is another leader's word.
    stage.fetcher.add(KEY, "t", stage.log, leader_epoch=6)
    stage.request(now_ms)
    stage.answer(FetchedPartition(ErrorCode.NOT_LEADER_OR_FOLLOWER), now_ms=now_ms)
    assert stage.fetcher.next_due_ms() == now_ms + 10


def test_a_fenced_epoch_waits_for_the_next() -> None:
    stage = Stage(log_of(3))
    stage.request()
    stage.answer(FetchedPartition(ErrorCode.FENCED_LEADER_EPOCH))
    assert (stage.failures, stage.fetcher.failed, len(stage.fetcher)) == ([], {KEY: 5}, 0)
    stage.fetcher.add(KEY, "t", stage.log, leader_epoch=6)
    assert stage.request() == (9, 1, {KEY: wanted(1, 3, 6)}, ())
    assert stage.fetcher.failed == {}


def test_an_answer_to_a_question_of_another_epoch_is_void() -> None:
    stage = Stage(log_of(3))
    stage.request()
    stage.fetcher.add(KEY, "t", stage.log, leader_epoch=6)
    records = [(5, 7)]
    stage.answer(FetchedPartition(high_watermark=2, log_start_offset=0, records=records))  # type: ignore[arg-type]
    assert (stage.log.log_end_offset, stage.log.high_watermark) == (1, 0)


def test_batches_of_a_later_epoch_are_left_out() -> None:
    stage = Stage(log_of(3))
    stage.request()
    records = [(5, 7), (6, 8)]
    stage.answer(FetchedPartition(high_watermark=9, log_start_offset=0, records=records))  # type: ignore[arg-type]
    assert (stage.log.log_end_offset, stage.log.high_watermark) == (2, 2)


@pytest.mark.parametrize(
    ("code", "gives_up"),
    [(ErrorCode.CORRUPT_MESSAGE, False), (ErrorCode.KAFKA_STORAGE_ERROR, True)],
)
def test_what_a_failed_append_means(code: ErrorCode, gives_up: bool) -> None:
    log = log_of(3)
    stage = Stage(log)
    stage.request()
    log.code = code
    records = [(5, 7)]
    stage.answer(FetchedPartition(high_watermark=9, log_start_offset=0, records=records))  # type: ignore[arg-type]
    assert (KEY in stage.fetcher.failed) is gives_up
    assert (stage.fetcher.next_due_ms() is None) is gives_up


@pytest.mark.parametrize(
    ("latest", "earliest", "position"),
    [
        pytest.param(2, 0, (2, 3), id="the leader's log is shorter: cut to it"),
        pytest.param(9, 0, (3, 3), id="it has grown since: go on"),
    ],
)
def test_an_offset_that_the_leader_does_not_have(
    latest: int, earliest: int, position: tuple[int, int]
) -> None:
    stage = Stage(log_of(3, 3, 3))
    stage.request()
    stage.answer(FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE))
    (reset,) = stage.fetcher.resets(0)
    assert stage.request() is None
    fetcher = stage.fetcher
    fetcher.on_reset(reset, error=ErrorCode.UNKNOWN_LEADER_EPOCH, latest=-1, earliest=-1, now_ms=0)
    assert fetcher.resets(0) == []
    (reset,) = fetcher.resets(BACKOFF_MS)
    fetcher.on_reset(reset, error=ErrorCode.NONE, latest=latest, earliest=earliest, now_ms=20)
    state = fetcher.state(KEY)
    assert state is not None
    assert state.phase is Phase.FETCHING
    assert (state.fetch_offset, state.last_fetched_epoch) == position


def test_no_answer_at_all_delays_everything() -> None:
    stage = Stage(log_of(3))
    stage.request()
    stage.fetcher.on_failure(now_ms=50)
    assert stage.request(now_ms=59) is None
    assert stage.request(now_ms=60) == (0, 0, {KEY: wanted(1, 3)}, ())


def test_only_who_is_not_in_sync_is_throttled() -> None:
    stage = Stage(log_of(3), throttled=True)
    assert stage.request() is None
    stage.throttled = False
    stage.request()
    stage.answer(FetchedPartition(high_watermark=1, log_start_offset=0))
    stage.throttled = True
    assert stage.request() == (9, 1, {}, ())


# The bytes of an answer.


@pytest.mark.parametrize("version", range(13, 19))
def test_an_answer_is_read_as_the_codec_reads_it(version: int) -> None:
    topic_id = random_uuid(bytes(range(16)))
    data = FetchResponse.PartitionData
    response = FetchResponse(
        session_id=7,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic_id=topic_id,
                partitions=[
                    data(partition_index=0, high_watermark=3, log_start_offset=1, records=b"abc"),
                    data(
                        partition_index=1,
                        error_code=6,
                        aborted_transactions=[FetchResponse.AbortedTransaction(producer_id=1)],
                        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=3),
                    ),
                    data(
                        partition_index=2,
                        error_code=32000,
                        aborted_transactions=None,
                        diverging_epoch=FetchResponse.EpochEndOffset(epoch=4, end_offset=9),
                    ),
                ],
            )
        ],
    )
    body = memoryview(encode(response, version))
    assert decode_fetch_response(version, body) == (
        ErrorCode.NONE,
        7,
        {
            (topic_id.bytes, 0): FetchedPartition(ErrorCode.NONE, 3, 1, b"abc"),
            (topic_id.bytes, 1): FetchedPartition(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, -1),
            (topic_id.bytes, 2): FetchedPartition(
                ErrorCode.UNKNOWN_SERVER_ERROR, 0, -1, None, (4, 9)
            ),
        },
    )
    for size in range(len(body) - 1):
        with pytest.raises(WireError):
            decode_fetch_response(version, body[:size])
    with pytest.raises(WireError):
        decode_fetch_response(12, body)
