"""What makes records and files go away: age, size, DeleteRecords, deleted topics.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.wire.records import encode_batch
from support import asking
from support.either import create_and_wait, either_broker, wait_for_leader
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

LONG_AGO_MS = 1_500_000_000_000
OFFSET_OUT_OF_RANGE, POLICY_VIOLATION, UNKNOWN_TOPIC = 1, 44, 3
SEGMENT_BYTES = "1048576"
SETTINGS = {
    "log.retention.check.interval.ms": "50",
    "log.initial.task.delay.ms": "0",
    "log.segment.delete.delay.ms": "200",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture
def to(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port) as connection:
        yield connection


_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    return f"topic-{next(_numbers)}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def append(to: RawConnection, topic: str, size: int = 10, *, timestamp: int | None = None) -> int:
    stamp = now_ms() if timestamp is None else timestamp
    answer = asking.produce(to, topic, 0, encode_batch([(b"k", bytes(size), stamp, ())]))
    assert answer.error_code == 0, answer
    return int(answer.base_offset)


def earliest(to: RawConnection, topic: str) -> int:
    return int(asking.list_offset(to, topic, 0, asking.EARLIEST).offset)


def latest(to: RawConnection, topic: str) -> int:
    return int(asking.list_offset(to, topic, 0, asking.LATEST).offset)


def segments(broker: BrokerProcess, topic: str) -> list[int]:
    folder = broker.folder_of(topic)
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def replicas(broker: BrokerProcess, pattern: str) -> list[str]:
    return [path.name for folder in broker.data_folders for path in folder.glob(pattern)]


def check_start(to: RawConnection, topic: str, start: int) -> None:
    """The log begins at `start` in every way a client can ask."""
    assert earliest(to, topic) == start
    offsets = [record.offset for record in asking.fetch_everything(to, topic, 0, start)]
    assert offsets == list(range(start, latest(to, topic)))
    if start:
        assert asking.fetch(to, topic, 0, start - 1).error_code == OFFSET_OUT_OF_RANGE


def test_by_age(broker: BrokerProcess, to: RawConnection, name: str) -> None:
    """Whole segments go when their newest record is too old; the rest stays."""
    create_and_wait(to, name, 1, {"segment.bytes": SEGMENT_BYTES, "retention.ms": "-1"})
    for number in range(8):
        append(to, name, 400_000, timestamp=LONG_AGO_MS + number)
    recent = append(to, name, 400_000)
    kept_from = max(base for base in segments(broker, name) if base <= recent)
    assert len(segments(broker, name)) >= 4
    asking.alter_config(to, asking.TOPIC_CONFIG, name, {"retention.ms": "3600000"})
    eventually(lambda: earliest(to, name) == kept_from, what="the old segments are gone")
    check_start(to, name, kept_from)
    eventually(lambda: segments(broker, name) == [kept_from], what="and their files")
    folder = broker.folder_of(name)
    eventually(lambda: not list(folder.glob("*.deleted")), what="nothing is left behind")


def test_everything_is_too_old(broker: BrokerProcess, to: RawConnection, name: str) -> None:
    create_and_wait(to, name, 1, {"retention.ms": "3600000"})
    for _ in range(3):
        append(to, name, timestamp=LONG_AGO_MS)
    eventually(lambda: earliest(to, name) == latest(to, name), what="nothing is left to read")
    end = latest(to, name)
    assert append(to, name) == end
    check_start(to, name, end)


def test_by_size(broker: BrokerProcess, to: RawConnection, name: str) -> None:
    """The log may be larger than the limit by less than a segment, never smaller."""
    config = {"segment.bytes": SEGMENT_BYTES, "retention.bytes": "2500000"}
    create_and_wait(to, name, 1, config)
    for _ in range(12):
        append(to, name, 400_000)
    folder = broker.folder_of(name)

    def size() -> int:
        total = 0
        for base in segments(broker, name):
            with suppress(FileNotFoundError):  # deleted since it was listed
                total += (folder / f"{base:020d}.log").stat().st_size
        return total

    eventually(lambda: 2_500_000 <= size() < 3_600_000, what="the log has shrunk")
    start = earliest(to, name)
    assert start == segments(broker, name)[0] > 0
    check_start(to, name, start)


def test_segments_roll_by_time(broker: BrokerProcess, to: RawConnection, name: str) -> None:
    create_and_wait(to, name, 1, {"segment.ms": "1000", "retention.ms": "-1"})
    for delta in (0, 500, 999, 1500, 2400, 2600):
        append(to, name, timestamp=LONG_AGO_MS + delta)
    assert segments(broker, name) == [0, 3, 5]


def test_compacted_topics_do_not_expire(to: RawConnection, name: str) -> None:
    create_and_wait(to, name, 1, {"cleanup.policy": "compact", "retention.ms": "1"})
    create_and_wait(to, f"{name}-control", 1, {"retention.ms": "1"})
    for topic in (name, f"{name}-control"):
        append(to, topic, timestamp=LONG_AGO_MS)
    eventually(lambda: earliest(to, f"{name}-control") == 1, what="retention has run")
    check_start(to, name, 0)
    answer = asking.delete_records(to, name, 0, 1)
    assert answer.error_code == POLICY_VIOLATION


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_deleted_records_stay_deleted(
    request: pytest.FixtureRequest, tmp_path: Path, kill: bool
) -> None:
    settings = {**SETTINGS, "log.flush.start.offset.checkpoint.interval.ms": "50"}
    with either_broker(request, tmp_path, settings) as broker:
        with RawConnection(broker.port) as to:
            create_and_wait(to, "t", 1, {"segment.bytes": SEGMENT_BYTES})
            for _ in range(9):
                append(to, "t", 400_000)
            inside = segments(broker, "t")[2] + 1
            answer = asking.delete_records(to, "t", 0, inside)
            assert (answer.error_code, answer.low_watermark) == (0, inside)
            check_start(to, "t", inside)
            eventually(lambda: segments(broker, "t")[0] == inside - 1, what="whole segments go")
        checkpoint = broker.folder_of("t").parent / "log-start-offset-checkpoint"
        if kill:
            eventually(
                lambda: checkpoint.exists() and f"t 0 {inside}" in checkpoint.read_text(),
                what="the checkpoint",
            )
            broker.kill()
        else:
            broker.stop()
        broker.start()
        with RawConnection(broker.port) as to:
            wait_for_leader(to, "t")
            check_start(to, "t", inside)
            assert append(to, "t") == 9
            answer = asking.delete_records(to, "t", 0, -1)
            assert answer.low_watermark == 10
            check_start(to, "t", 10)


def test_a_deleted_topics_files_go(broker: BrokerProcess, to: RawConnection, name: str) -> None:
    create_and_wait(to, name, 2)
    first_id = asking.describe_topic(to, name).topic_id
    append(to, name)
    assert replicas(broker, f"{name}-*")
    asking.delete_topic(to, name)
    eventually(
        lambda: asking.describe_topic(to, name).error_code == UNKNOWN_TOPIC, what="it is unknown"
    )
    eventually(lambda: not replicas(broker, f"{name}-*"), what="its files are gone")

    create_and_wait(to, name, 2)
    assert asking.describe_topic(to, name).topic_id != first_id
    assert latest(to, name) == 0
    assert append(to, name) == 0
    check_start(to, name, 0)


def test_a_topic_is_made_anew_while_the_old_files_wait(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Old files neither come back nor stay for ever, whatever happens during the delay."""
    settings = {**SETTINGS, "log.segment.delete.delay.ms": "600000"}
    broker = either_broker(request, tmp_path, settings).start()
    try:
        with RawConnection(broker.port) as to:
            create_and_wait(to, "t", 1)
            append(to, "t")
            append(to, "t")
            asking.delete_topic(to, "t")
            create_and_wait(to, "t", 1)
            assert latest(to, "t") == 0
            assert append(to, "t") == 0
            topic_id = asking.describe_topic(to, "t").topic_id
        assert len(replicas(broker, "t-0*")) == 2
        broker.stop()
        # What waited for its removal is found again by its name.
        settings["log.segment.delete.delay.ms"] = "0"
        broker = either_broker(request, tmp_path, settings).start()
        with RawConnection(broker.port) as to:
            wait_for_leader(to, "t")
            eventually(
                lambda: replicas(broker, "t-0*") == ["t-0"],
                what="only the new topic's files are there",
            )
            assert asking.describe_topic(to, "t").topic_id == topic_id
            check_start(to, "t", 0)
            assert latest(to, "t") == 1
    finally:
        broker.kill()
