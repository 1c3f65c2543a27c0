"""A partition moves to another log folder while clients write and read it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import decode_response
from moldau.wire.message import Message as WireMessage
from moldau.wire.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from moldau.wire.records import encode_batch
from support import asking
from support.processes import BrokerProcess, moldau
from support.raw import RawConnection
from support.waiting import eventually

TOPIC = "mover"
SECONDS_MAX = 60.0
# Enough that a move is seen on its way: it copies a megabyte at a time.
PRELOADED_BATCHES = 48
BATCH = encode_batch([(b"k", bytes(1_000_000), 1, ())])

LOG_DIR_NOT_FOUND = 57
NOT_HERE = (3, 6)


def broker_on(folder: Path) -> BrokerProcess:
    return moldau(folder, ["log.retention.ms=-1", f"log.dirs={folder / 'one'},{folder / 'two'}"])


def preload(to: RawConnection, config: dict[str, str]) -> None:
    asking.create_topic(to, TOPIC, 1, config)
    for number in range(PRELOADED_BATCHES):
        assert asking.produce(to, TOPIC, 0, BATCH).base_offset == number


def where(to: RawConnection | Sending) -> tuple[set[str], set[str]]:
    """Names of the folders that hold the partition, and its copy in the making."""
    current, future = set(), set()
    for path, folder in asking.log_folders(to).items():
        if (TOPIC, 0) in folder.current:
            current.add(Path(path).name)
        if (TOPIC, 0) in folder.future:
            future.add(Path(path).name)
    return current, future


class Sending:
    """Requests that go out before the first is answered, so that a broker that copies quickly has
    no time between them. `support.asking` calls it as a connection, for each answer in turn."""

    def __init__(self, to: RawConnection, *requests: tuple[ApiKey, int, WireMessage]) -> None:
        self._to = to
        for request in requests:
            to.send(*request)

    def call(self, key: ApiKey, version: int, request: WireMessage) -> Any:
        return decode_response(API_BY_KEY[key], version, self._to.receive_frame())[1]


def move_request(path: Path) -> tuple[ApiKey, int, WireMessage]:
    topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    folder = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=str(path), topics=[topic])
    return ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest(dirs=[folder])


FOLDERS_REQUEST = (ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))


def other(name: str) -> str:
    return "two" if name == "one" else "one"


class Clients:
    """A producer and a consumer at work in threads."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[tuple[int, bytes]] = []
        self.seen: list[tuple[int, bytes]] = []
        self.problems: list[object] = []
        self._written = threading.Event()
        self._stop = threading.Event()
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1,
        })  # fmt: skip
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": "g", "check.crcs": True,
            "enable.auto.commit": False,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(TOPIC, 0, PRELOADED_BATCHES)])
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = b"%d " % number + bytes(number * 37 % 900)
            try:
                self._producer.produce(TOPIC, value, partition=0, on_delivery=self._delivered)
                number += 1
            except BufferError:
                self._producer.poll(0.01)
            self._producer.poll(0.001)
        if self._producer.flush(30):
            self.problems.append("records were left at the end")
        self._written.set()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is not None or offset is None:
            self.problems.append(error)
        else:
            self.acknowledged.append((offset, bytes(message.value() or b"")))

    def _read(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline and not self.problems:
            for message in self._consumer.consume(1000, 0.05):
                if message.error() is not None:
                    self.problems.append(message.error())
                else:
                    self.seen.append((message.offset() or 0, message.value() or b""))
            if self._written.is_set() and len(self.seen) >= len(self.acknowledged):
                break
        self._consumer.close()

    def wait_for_more(self, count: int) -> None:
        written, read = len(self.acknowledged) + count, len(self.seen) + count
        eventually(
            lambda: self.problems or (len(self.acknowledged) > written and len(self.seen) > read),
            what="clients go on",
        )
        assert self.problems == []

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"segment.bytes": "4194304"}, id="many segments"),
        pytest.param(
            {"flush.messages": "1"},
            id="flushed with every append",
            marks=pytest.mark.long("the same with other settings"),
        ),
    ],
)
def test_clients_do_not_notice_a_move(tmp_path: Path, config: dict[str, str]) -> None:
    with broker_on(tmp_path) as broker, RawConnection(broker.port) as to:
        preload(to, config)
        clients = Clients(broker.bootstrap)
        try:
            for _ in range(3):
                clients.wait_for_more(200)
                (source,), _ = where(to)
                target = other(source)
                answers = Sending(to, move_request(tmp_path / target), FOLDERS_REQUEST)
                assert asking.move(answers, TOPIC, [0], str(tmp_path / target)) == {0: 0}
                on_its_way = where(answers)
                eventually(lambda: where(to) == ({target}, set()), what="the move is done")  # noqa: B023
                assert on_its_way == ({source}, {target})
                assert not (tmp_path / source / f"{TOPIC}-0").exists()
                assert (tmp_path / target / f"{TOPIC}-0").is_dir()
            clients.wait_for_more(200)
        finally:
            clients.finish()
        assert clients.problems == []
        assert clients.seen == clients.acknowledged
        assert [offset for offset, _ in clients.seen] == list(
            range(PRELOADED_BATCHES, PRELOADED_BATCHES + len(clients.seen))
        )

    with broker_on(tmp_path) as broker, RawConnection(broker.port) as to:
        assert where(to) == ({target}, set())
        records = asking.fetch_everything(to, TOPIC, 0)
        assert len(records) == PRELOADED_BATCHES + len(clients.acknowledged)
        stored = [(record.offset, record.value) for record in records[PRELOADED_BATCHES:]]
        assert stored == clients.acknowledged


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(False, id="stopped", marks=pytest.mark.long("a kill is harder")),
        pytest.param(True, id="killed"),
    ],
)
def test_a_move_goes_on_after_a_restart(tmp_path: Path, kill: bool) -> None:
    broker = broker_on(tmp_path).start()

    def interrupt_move() -> str | None:
        """The folder that it was on its way to; None if it has come there before."""
        with RawConnection(broker.port) as to:
            (source,), _ = where(to)
            target = other(source)
            assert asking.move(to, TOPIC, [0], str(tmp_path / target)) == {0: 0}
        if kill:
            broker.kill()
        else:
            assert broker.stop() == 0
        is_on_its_way = any((tmp_path / target).glob(f"{TOPIC}-0.*-future"))
        assert not is_on_its_way or (tmp_path / source / f"{TOPIC}-0").is_dir()
        broker.start()
        return target if is_on_its_way else None

    try:
        with RawConnection(broker.port) as to:
            preload(to, {})
        # As a rule it is in the middle of it at the first time.
        target = eventually(interrupt_move, what="a move is interrupted")
        with RawConnection(broker.port) as to:
            eventually(lambda: where(to) == ({target}, set()), what="the move is done")
            records = asking.fetch_everything(to, TOPIC, 0)
            assert [record.offset for record in records] == list(range(PRELOADED_BATCHES))
            assert asking.produce(to, TOPIC, 0, BATCH).base_offset == PRELOADED_BATCHES
    finally:
        broker.kill()


def test_moves_that_make_no_sense(tmp_path: Path) -> None:
    with broker_on(tmp_path) as broker, RawConnection(broker.port) as to:
        preload(to, {})
        (source,), _ = where(to)
        assert asking.move(to, TOPIC, [0], str(tmp_path / "three")) == {0: LOG_DIR_NOT_FOUND}
        assert asking.move(to, TOPIC, [7], str(tmp_path / source))[7] in NOT_HERE
        # To where it is: nothing to do, and a move under way is called off.
        there, back = tmp_path / other(source), tmp_path / source
        answers = Sending(to, move_request(there), move_request(back), FOLDERS_REQUEST)
        for path in (there, back):
            assert asking.move(answers, TOPIC, [0], str(path)) == {0: 0}
        assert where(answers) == ({source}, set())
        # A topic may go while it moves.
        assert asking.move(to, TOPIC, [0], str(tmp_path / other(source))) == {0: 0}
        asking.delete_topic(to, TOPIC)
        assert where(to) == (set(), set())
        asking.create_topic(to, TOPIC)
        assert asking.produce(to, TOPIC, 0, BATCH).base_offset == 0
        assert len(asking.fetch_everything(to, TOPIC, 0)) == 1
        assert "Traceback" not in broker.output()
