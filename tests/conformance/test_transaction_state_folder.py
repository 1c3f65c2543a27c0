"""Transaction state that Apache Kafka left: both brokers open it and go on in the same way.

The state topic of a Kafka folder gets records for every situation that takes long to come about:
epochs used up, ids about to change, ends half done, transactions and ids long overdue. Copies of
the folder then live on under each broker, with the same requests. What they answer must agree,
and what they write to the state topic too.
"""

from __future__ import annotations

import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddPartitionsToTxnRequest,
    CreateTopicsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    MetadataRequest,
    ProduceRequest,
    TransactionLogKey,
    TransactionLogValue,
)
from moldau.wire.record_values import (
    decode_coordinator_record,
    encode_coordinator_key,
    encode_coordinator_value,
)
from moldau.wire.records import decode_batches, encode_batch
from support.processes import BrokerProcess, apache_kafka, kafka_missing
from support.raw import RawConnection
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

STATE_TOPIC = "__transaction_state"
LAST = 32_766
"""The last epoch that a client can have."""
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}
FRESH_FROM = 1_000
"""Ids that the broker hands out after its restart; those in the records are below."""

Step = tuple[str, Any]


def value(producer_id: int, epoch: int, status: int, **fields: Any) -> TransactionLogValue:
    now_ms = int(time.time() * 1_000)
    settings: dict[str, Any] = {
        "previous_producer_id": producer_id,
        "transaction_timeout_ms": 600_000,
        "transaction_last_update_timestamp_ms": now_ms,
        "transaction_start_timestamp_ms": -1 if status == EMPTY else now_ms,
        "client_transaction_version": 2,
        "transaction_partitions": None
        if status == EMPTY
        else [TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[0, 1])]
        if status in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)
        else [],
    }
    return TransactionLogValue(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_status=status,
        **(settings | fields),
    )


def situations() -> dict[str, tuple[TransactionLogValue, int]]:
    """By transactional id: what is stored, and in which version."""
    old = {"transaction_start_timestamp_ms": 1_000, "transaction_last_update_timestamp_ms": 1_000}
    v1 = {"client_transaction_version": 0}
    v0 = v1 | {"previous_producer_id": -1}
    return {
        "prepare-commit": (value(501, 5, PREPARE_COMMIT), 1),
        "prepare-abort-v1": (value(502, 5, PREPARE_ABORT, **v1), 1),
        "prepare-last": (value(503, LAST + 1, PREPARE_ABORT, next_producer_id=777), 1),
        "prepare-v0": (value(504, 5, PREPARE_COMMIT, **v0), 0),
        "last": (value(505, LAST, ONGOING), 1),
        "last-fenced": (value(506, LAST, ONGOING), 1),
        "last-v1": (value(507, LAST, ONGOING, **v1), 1),
        "used-up": (value(508, LAST, COMPLETE_COMMIT, **v1), 1),
        "used-up-beyond": (value(509, LAST + 1, COMPLETE_ABORT, **v1), 1),
        "last-recovered": (value(510, LAST, COMPLETE_ABORT), 1),
        "empty": (value(511, 5, EMPTY), 1),
        "aborted": (value(512, 5, COMPLETE_ABORT), 1),
        "committed": (value(513, 5, COMPLETE_COMMIT), 1),
        "overdue": (value(514, 5, ONGOING, **old), 1),
        "never-due": (value(515, 5, ONGOING, **(old | {"transaction_timeout_ms": 2**31 - 1})), 1),
        "expired": (value(516, 5, COMPLETE_COMMIT, **old), 1),
        "expired-empty": (value(517, 5, EMPTY, transaction_last_update_timestamp_ms=1_000), 1),
        "gone": (
            value(518, 5, PREPARE_COMMIT, transaction_partitions=[
                TransactionLogValue.PartitionsSchema(topic="deleted", partition_ids=[0])]), 1),
    }  # fmt: skip


class Talk:
    """A conversation with one broker that notes every answer."""

    def __init__(self, port: int) -> None:
        self.connection = RawConnection(port)
        self.steps: list[Step] = []
        self._names: dict[int, str] = {}

    def init(self, transactional_id: str, producer: int = -1, epoch: int = -1) -> None:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=600_000,
            producer_id=producer,
            producer_epoch=epoch,
        )
        answer = self._settled(ApiKey.INIT_PRODUCER_ID, 5, request, lambda it: it.error_code)
        self._note("init", transactional_id, answer)

    def end(
        self, transactional_id: str, producer: int, epoch: int, committed: bool, version: int = 5
    ) -> None:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer,
            producer_epoch=epoch,
            committed=committed,
        )
        answer = self._settled(ApiKey.END_TXN, version, request, lambda it: it.error_code)
        self._note(f"end {committed}", transactional_id, answer)

    def add(self, transactional_id: str, producer: int, epoch: int) -> None:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[2])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[topic],
        )

        def code(answer: Any) -> int:
            found = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
            return int(found.partition_error_code)

        answer = self._settled(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, code)
        self.steps.append((f"add {transactional_id}", ErrorCode(code(answer)).name))

    def until(self, transactional_id: str, state: str) -> None:
        def reached() -> Any:
            found = self._describe(transactional_id)
            return found if state in (found[0], found[1]) else None

        self.steps.append(
            (f"{transactional_id} becomes {state}", eventually(reached, what=str(self.steps[-1:])))
        )

    def _describe(self, transactional_id: str) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        answer = self.connection.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
        (found,) = answer.transaction_states
        return (
            ErrorCode(found.error_code).name,
            found.transaction_state,
            self.name(found.producer_id),
            found.producer_epoch,
            found.transaction_timeout_ms,
        )

    def list(self) -> None:
        answer = self.connection.call(ApiKey.LIST_TRANSACTIONS, 1, ListTransactionsRequest())
        self.steps.append(
            (
                "list",
                sorted(
                    (each.transactional_id, self.name(each.producer_id), each.transaction_state)
                    for each in answer.transaction_states
                ),
            )
        )

    def name(self, producer_id: int) -> Any:
        if producer_id < FRESH_FROM:
            return producer_id
        return self._names.setdefault(producer_id, f"fresh-{len(self._names)}")

    def _note(self, step: str, transactional_id: str, answer: Any) -> None:
        noted = (
            ErrorCode(answer.error_code).name,
            self.name(answer.producer_id),
            answer.producer_epoch,
        )
        self.steps.append((f"{step} {transactional_id}", noted))

    def _settled(
        self, key: ApiKey, version: int, request: Message, code: Callable[[Any], int]
    ) -> Any:
        """The answer once nothing is under way; how often that takes is each broker's own."""

        def answered() -> Any:
            answer = self.connection.call(key, version, request)
            passing = (
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.NOT_COORDINATOR,
            )
            return None if code(answer) in passing else answer

        return eventually(answered, what=f"{key.name} is settled")


def converse(port: int) -> list[Step]:
    talk = Talk(port)
    talk.until("prepare-commit", "CompleteCommit")
    for epoch in (4, 5, 3):
        talk.end("prepare-commit", 501, epoch, True)
    talk.end("prepare-commit", 501, 4, False)
    talk.until("prepare-abort-v1", "CompleteAbort")
    talk.end("prepare-abort-v1", 502, 5, False, version=4)
    talk.end("prepare-abort-v1", 502, 5, True, version=4)
    talk.until("prepare-last", "CompleteAbort")
    talk.end("prepare-last", 503, LAST, False)
    talk.end("prepare-last", 503, LAST, True)
    talk.end("prepare-last", 503, LAST + 1, False)
    talk.add("prepare-last", 503, LAST)
    talk.init("prepare-last", 503, LAST)
    talk.add("prepare-last", 777, 0)
    talk.end("prepare-last", 777, 0, True)
    talk.until("prepare-v0", "CompleteCommit")
    talk.end("prepare-v0", 504, 5, True, version=4)
    talk.init("prepare-v0", 504, 5)
    talk.init("prepare-v0", 504, 5)

    talk.end("last", 505, LAST, True)
    talk.until("last", "CompleteCommit")
    talk.end("last", 505, LAST, True)
    talk.end("last", 505, LAST, False)
    talk.add("last", 505, LAST)
    talk.init("last", 505, LAST)
    talk.init("last-fenced")
    talk.init("last-fenced")
    talk.end("last-fenced", 506, LAST, True)
    talk.end("last-v1", 507, LAST, True, version=4)
    talk.end("last-v1", 507, LAST, True, version=4)
    talk.init("last-v1", 507, LAST)
    talk.init("last-v1", 507, LAST)
    talk.init("last-v1")
    talk.init("last-v1", 507, LAST)
    talk.init("used-up")
    talk.init("used-up", 508, LAST)
    talk.init("used-up-beyond")
    talk.end("last-recovered", 510, LAST, False)
    talk.until("last-recovered", "CompleteAbort")
    talk.init("last-recovered", 510, LAST)

    for name, producer in (("empty", 511), ("aborted", 512), ("committed", 513)):
        talk.end(name, producer, 4, True)
        talk.end(name, producer, 4, False)
        talk.end(name, producer, 5, True)
        talk.end(name, producer, 6, False)
        talk.end(name, producer + 1, 5, False)
        talk.end(name, producer, 5, False)
        talk.until(name, "CompleteAbort")
        talk.init(name, producer, 5)
        talk.init(name, producer, 5)
        talk.init(name, producer, 6)
        talk.add(name, producer, 6)
    talk.until("overdue", "CompleteAbort")
    talk.add("overdue", 514, 5)
    talk.end("overdue", 514, 5, True)
    talk.end("overdue", 514, 5, False)
    talk.until("never-due", "Ongoing")
    talk.until("expired", "TRANSACTIONAL_ID_NOT_FOUND")
    talk.until("expired-empty", "TRANSACTIONAL_ID_NOT_FOUND")
    talk.end("expired", 516, 5, True)
    talk.until("gone", "CompleteCommit")
    talk.list()
    talk.connection.close()
    return talk.steps


# The folder.


def call_as_admin(port: int, key: ApiKey, version: int, request: Message) -> Any:
    """Kafka lets nobody write to internal topics but a client of this name."""
    connection = RawConnection(port)
    with connection:
        frame = encode_request_frame(API_BY_KEY[key], version, 1, "__admin_client", request)
        connection.socket.sendall(frame)
        return decode_response(API_BY_KEY[key], version, connection.receive_frame())[1]


def make_folder(port: int) -> None:
    with RawConnection(port) as connection:
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
        eventually(
            lambda: (
                connection.call(ApiKey.FIND_COORDINATOR, 4, find).coordinators[0].error_code
                == ErrorCode.NONE
            ),
            what="there is a transaction coordinator",
        )
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=1)
        connection.call(
            ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        )
        # So that the next block of producer ids is beyond those in the records.
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        eventually(
            lambda: (
                connection.call(ApiKey.INIT_PRODUCER_ID, 4, request).error_code == ErrorCode.NONE
            ),
            what="there are producer ids",
        )
        state_id = topic_id(connection)
    records = [
        (
            encode_coordinator_key(TransactionLogKey(transactional_id=name)),
            encode_coordinator_value(stored, version),
            int(time.time() * 1_000),
            (),
        )
        for name, (stored, version) in situations().items()
    ]
    partition = ProduceRequest.PartitionProduceData(index=0, records=encode_batch(records))
    data = ProduceRequest.TopicProduceData(topic_id=state_id, partition_data=[partition])
    answer = call_as_admin(
        port, ApiKey.PRODUCE, 13, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    )
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def topic_id(connection: RawConnection) -> Any:
    topic = MetadataRequest.MetadataRequestTopic(name=STATE_TOPIC)
    (found,) = connection.call(ApiKey.METADATA, 12, MetadataRequest(topics=[topic])).topics
    return found.topic_id


def state_records(port: int, names: Callable[[int], Any]) -> dict[str, list[Any]]:
    """What the state topic says of each transactional id, without times."""
    with RawConnection(port) as connection:
        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 24)
        topic = FetchRequest.FetchTopic(topic_id=topic_id(connection), partitions=[partition])
        answer = connection.call(
            ApiKey.FETCH, 13, FetchRequest(max_wait_ms=500, max_bytes=1 << 24, topics=[topic])
        )
    found: dict[str, list[Any]] = {}
    batches = decode_batches(answer.responses[0].partitions[0].records)
    for record in (each for _, records in batches for each in records):
        assert record.key is not None
        key, stored = decode_coordinator_record("transaction", record.key, record.value)
        assert isinstance(key, TransactionLogKey)
        assert stored is None or isinstance(stored, TransactionLogValue)
        row: Any = None
        if stored is not None:
            (version,) = struct.unpack_from(">h", record.value or b"")
            row = (
                version,
                names(stored.producer_id),
                names(stored.previous_producer_id),
                names(stored.next_producer_id),
                stored.producer_epoch,
                stored.next_producer_epoch,
                stored.transaction_timeout_ms,
                stored.transaction_status,
                stored.transaction_start_timestamp_ms >= 0,
                stored.client_transaction_version,
                None
                if stored.transaction_partitions is None
                else sorted(
                    (each.topic, sorted(each.partition_ids))
                    for each in stored.transaction_partitions
                ),
            )
        found.setdefault(key.transactional_id, []).append(row)
    return found


def live_on(broker: BrokerProcess) -> tuple[list[Step], dict[str, list[Any]]]:
    with broker:
        steps = converse(broker.port)
        numbered: dict[int, str] = {}

        def names(producer_id: int) -> Any:
            if producer_id < FRESH_FROM:
                return producer_id
            return numbered.setdefault(producer_id, f"fresh-{len(numbered)}")

        return steps, state_records(broker.port, names)


@pytest.mark.long("both brokers on many states; test_kafka_folder moves a folder there and back")
def test_both_go_on_from_what_kafka_left(tmp_path: Path) -> None:
    with apache_kafka(tmp_path, SETTINGS | {
        # Not before the folder has been copied.
        "transaction.remove.expired.transaction.cleanup.interval.ms": "3600000",
    }) as kafka:  # fmt: skip
        make_folder(kafka.port)
    config = tmp_path / "server.properties"
    properties = dict(line.split("=", 1) for line in config.read_text().splitlines())
    config.write_text("".join(f"{k}={v}\n" for k, v in (properties | SETTINGS).items()))
    shutil.copytree(tmp_path / "data", tmp_path / "kept")

    theirs = live_on(BrokerProcess(kafka.command, kafka.port, tmp_path / "kafka2.log"))
    shutil.rmtree(tmp_path / "data")
    shutil.move(tmp_path / "kept", tmp_path / "data")
    command = [sys.executable, "-m", "moldau.cli", "server-start", str(config)]
    ours = live_on(BrokerProcess(command, kafka.port, tmp_path / "moldau.log"))

    assert {"NONE", "PRODUCER_FENCED", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"} <= {
        answer[0] for _, answer in theirs[0]
    }
    for mine, kafkas in zip(ours[0], theirs[0], strict=True):
        assert mine == kafkas
    assert ours[1].keys() == theirs[1].keys()
    for transactional_id, rows in ours[1].items():
        assert rows == theirs[1][transactional_id], transactional_id

    # And back: Kafka opens what we made of it.
    with BrokerProcess(kafka.command, kafka.port, tmp_path / "kafka3.log") as again:
        talk = Talk(again.port)
        talk.until("never-due", "Ongoing")
        talk.list()
        talk.connection.close()
    assert [row[0] for row in talk.steps[-1][1]] == [row[0] for row in ours[0][-1][1]]
    assert [row[2] for row in talk.steps[-1][1]] == [row[2] for row in ours[0][-1][1]]
