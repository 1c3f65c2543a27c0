"""A clean stop leaves nothing to do for the next start; after a crash the log is put in order.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.messages import MetadataRequest
from moldau.wire.records import encode_batch
from support import asking
from support.either import create_and_wait, either_broker, wait_for_leader
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

TOPIC = "t"
BATCHES = 12
BATCH_VALUE_SIZE = 300_000
CONFIG = {"segment.bytes": "1048576"}
PRODUCER_ID = 90
OUT_OF_ORDER_SEQUENCE = 45

Start = Callable[[], BrokerProcess]


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """A broker on the test's one folder; started again it finds what the last one left."""
    broker = either_broker(request, tmp_path, {})
    yield broker.start
    broker.kill()


def append(to: RawConnection, sequence: int) -> int:
    """One idempotent batch; its offset."""
    now_ms = time.time_ns() // 1_000_000
    batch = encode_batch(
        [(b"k", bytes([sequence]) * BATCH_VALUE_SIZE, now_ms, ())],
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=sequence,
    )
    answer = asking.produce(to, TOPIC, 0, batch)
    assert answer.error_code in (0, OUT_OF_ORDER_SEQUENCE), answer
    return -1 if answer.error_code else int(answer.base_offset)


def fill(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as to:
        create_and_wait(to, TOPIC, 1, CONFIG)
        assert [append(to, sequence) for sequence in range(BATCHES)] == list(range(BATCHES))


def mark_of(folder: Path) -> Path:
    return folder / "data" / ".kafka_cleanshutdown"


def files_of(folder: Path) -> list[Path]:
    return sorted((folder / "data" / f"{TOPIC}-0").iterdir())


def last_segment(folder: Path) -> Path:
    return sorted((folder / "data" / f"{TOPIC}-0").glob("*.log"))[-1]


def damage_last_batch(folder: Path) -> None:
    with last_segment(folder).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")


def check_readable(to: RawConnection, count: int) -> None:
    records = asking.fetch_everything(to, TOPIC, 0)
    assert [(record.offset, record.value) for record in records] == [
        (offset, bytes([offset]) * BATCH_VALUE_SIZE) for offset in range(count)
    ]
    for record in records:
        found = asking.list_offset(to, TOPIC, 0, record.timestamp)
        assert (found.offset, found.timestamp) == (
            min(other.offset for other in records if other.timestamp == record.timestamp),
            record.timestamp,
        )


def test_a_clean_stop_leaves_its_mark(start: Start, tmp_path: Path) -> None:
    broker = start()
    fill(broker)
    assert not mark_of(tmp_path).exists()
    broker.stop()
    mark = json.loads(mark_of(tmp_path).read_text())
    assert mark["version"] == 0
    assert mark["brokerEpoch"] >= 0
    recovery_points = (tmp_path / "data" / "recovery-point-offset-checkpoint").read_text()
    assert f"{TOPIC} 0 {BATCHES}\n" in recovery_points
    # Its port is bound before the mark is removed, so that a start on a taken port leaves the mark.
    with RawConnection(start().port) as to:
        wait_for_leader(to, TOPIC)
    assert not mark_of(tmp_path).exists()
    broker.kill()
    assert not mark_of(tmp_path).exists()


def test_a_clean_start_checks_and_changes_no_data(start: Start, tmp_path: Path) -> None:
    broker = start()
    fill(broker)
    broker.stop()
    # A check of the data would find this and cut it.
    damage_last_batch(tmp_path)
    before = {path.name: path.read_bytes() for path in files_of(tmp_path) if path.suffix == ".log"}
    broker = start()
    with RawConnection(broker.port) as to:
        wait_for_leader(to, TOPIC)
        assert asking.list_offset(to, TOPIC, 0, asking.LATEST).offset == BATCHES
    broker.kill()
    after = {path.name: path.read_bytes() for path in files_of(tmp_path) if path.suffix == ".log"}
    assert after == before


def test_after_a_crash_a_damaged_batch_is_cut_off(start: Start, tmp_path: Path) -> None:
    broker = start()
    fill(broker)
    broker.kill()
    size = last_segment(tmp_path).stat().st_size
    damage_last_batch(tmp_path)
    broker = start()
    with RawConnection(broker.port) as to:
        wait_for_leader(to, TOPIC)
        assert asking.list_offset(to, TOPIC, 0, asking.LATEST).offset == BATCHES - 1
        assert last_segment(tmp_path).stat().st_size < size
        check_readable(to, BATCHES - 1)
        # The producer's state was cut with its batch: the lost one is expected next.
        assert append(to, BATCHES) == -1
        assert append(to, BATCHES - 1) == BATCHES - 1
        check_readable(to, BATCHES)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("harm", ["garbage", "missing"])
def test_after_a_crash_what_is_beside_the_data_is_made_anew(
    start: Start, tmp_path: Path, suffix: str, harm: str
) -> None:
    broker = start()
    fill(broker)
    broker.kill()
    harmed = [path for path in files_of(tmp_path) if path.suffix == suffix]
    assert harmed
    for path in harmed:
        if harm == "missing":
            path.unlink()
        else:
            path.write_bytes(b"\xff" * 40)
    broker = start()
    with RawConnection(broker.port) as to:
        wait_for_leader(to, TOPIC)
        check_readable(to, BATCHES)
        assert append(to, BATCHES + 1) == -1
        assert append(to, BATCHES) == BATCHES


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_what_was_decided_stays(start: Start, tmp_path: Path, kill: bool) -> None:
    """Topics, ids, partitions, configs and producers are as they were."""
    broker = start()
    fill(broker)
    with RawConnection(broker.port) as to:
        create_and_wait(to, "several", 5, {"retention.ms": "777"})
        create_and_wait(to, "gone")
        asking.delete_topic(to, "gone")
        ids = {name: asking.describe_topic(to, name).topic_id for name in (TOPIC, "several")}
    if kill:
        broker.kill()
    else:
        broker.stop()
    broker = start()
    with RawConnection(broker.port) as to:
        wait_for_leader(to, TOPIC)
        for name, topic_id in ids.items():
            assert asking.describe_topic(to, name).topic_id == topic_id
        assert len(asking.describe_topic(to, "several").partitions) == 5
        assert asking.config(to, asking.TOPIC_CONFIG, "several", "retention.ms") == ("777", 1)
        assert asking.describe_topic(to, "gone").error_code == 3
        check_readable(to, BATCHES)
        # Sent again it is known, sent too far ahead it is refused, the next one is taken.
        assert append(to, BATCHES - 1) == BATCHES - 1
        assert append(to, BATCHES + 1) == -1
        assert append(to, BATCHES) == BATCHES
        eventually(
            lambda: asking.list_offset(to, TOPIC, 0, asking.LATEST).offset == BATCHES + 1,
            what="the next batch is committed",
        )


def named(to: RawConnection) -> int:
    """How many brokers a client is told of."""
    topic = MetadataRequest.MetadataRequestTopic(name=TOPIC)
    return len(to.call(ApiKey.METADATA, 12, MetadataRequest(topics=[topic])).brokers)


def named_until_the_end(to: RawConnection) -> set[int]:
    counts = set()
    with suppress(OSError):
        while True:
            counts.add(named(to))
    return counts


def test_a_broker_that_stops_names_itself_as_long_as_it_answers(start: Start) -> None:
    """librdkafka forgets brokers that are not named, and with the last one its way back."""
    broker = start()
    fill(broker)
    with RawConnection(broker.port) as to, ThreadPoolExecutor(1) as beside:
        assert named(to) == 1
        counts = beside.submit(named_until_the_end, to)
        broker.stop()
        assert counts.result() <= {1}
