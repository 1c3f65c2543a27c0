"""The writer of the audit topic: through which broker, how often it tries, and what is dropped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moldau.broker import audit_topic
from moldau.broker.audit_topic import RETRY_MS, STOP_MS_MAX, AuditTopic
from moldau.broker.machine.topics import AUDIT_TOPIC
from moldau.broker.topic_writer import TopicWriter
from moldau.wire.apis import ApiKey
from moldau.wire.constants import ACKS_ALL
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import ProduceRequest, ProduceResponse
from moldau.wire.records import decode_batches
from support.channels import HandClock
from support.other_brokers import FAR, LISTENER, ME, NEAR, OtherBrokers, settle


class Stage:
    def __init__(self) -> None:
        self.others = OtherBrokers()
        self.clock = HandClock()
        self.codes: list[ErrorCode] = []
        """Of the next answers; then there is no error."""
        self.created = 0
        writer = TopicWriter(
            AUDIT_TOPIC,
            lambda: self.others.image,
            self.others,
            self.clock,
            node_id=ME,
            inter_broker_listener=LISTENER,
            local=lambda topic, index: None,
            timeout_ms=lambda: 1_000,
        )
        self.topic = AuditTopic(lambda: self.others.image, writer, self.clock, node_id=ME)
        for peer in self.others.peers.values():
            peer.answer = self._answer

    async def _answer(self, key: ApiKey, request: Message) -> Message:
        assert key == ApiKey.PRODUCE
        assert isinstance(request, ProduceRequest)
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        (topic,) = request.topic_data
        part = ProduceResponse.PartitionProduceResponse(index=1, error_code=code)
        answered = ProduceResponse.TopicProduceResponse(
            topic_id=topic.topic_id, partition_responses=[part]
        )
        return ProduceResponse(responses=[answered])

    async def create(self) -> None:
        self.created += 1
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no broker yet")

    def written(self, broker_id: int) -> list[list[bytes]]:
        """The values of each request that a broker got."""
        found = []
        for request in self.others.peers[broker_id].asked:
            assert isinstance(request, ProduceRequest)
            assert request.acks == ACKS_ALL
            ((part,),) = [topic.partition_data for topic in request.topic_data]
            assert part.index == 1
            records = [each for _, batch in decode_batches(part.records or b"") for each in batch]
            found.append([each.value or b"" for each in records])
        return found

    async def passes(self, delay_ms: int) -> None:
        self.clock.advance(delay_ms)
        await settle()


def run(scene: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        stage = Stage()
        stage.topic.start(stage.create)
        await scene(stage)
        if stage.topic._task is not None:
            stage.topic._task.cancel()

    asyncio.run(main())


def test_the_leader_gets_the_events_in_order() -> None:
    async def scene(stage: Stage) -> None:
        stage.others.create_topic(AUDIT_TOPIC, FAR, NEAR)
        stage.topic.add(["one\n", "two\n"])
        await settle()
        stage.topic.add(["three\n"])
        await settle()
        assert stage.written(NEAR) == [[b"one", b"two"], [b"three"]]
        assert stage.written(FAR) == []

    run(scene)


def test_a_new_leader_gets_what_the_former_one_refused() -> None:
    async def scene(stage: Stage) -> None:
        stage.others.create_topic(AUDIT_TOPIC, FAR, NEAR)
        stage.codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        stage.topic.add(["one\n"])
        await settle()
        stage.others.move(AUDIT_TOPIC, 1, FAR)
        stage.topic.add(["two\n"])
        await stage.passes(RETRY_MS)
        assert stage.written(FAR) == [[b"one"], [b"two"]]

    run(scene)


def test_events_wait_for_the_topic() -> None:
    async def scene(stage: Stage) -> None:
        stage.topic.add(["one\n"])
        await settle()
        assert stage.created == 1
        await stage.passes(RETRY_MS)
        assert stage.created == 2
        stage.others.create_topic(AUDIT_TOPIC, FAR, NEAR)
        await stage.passes(2 * RETRY_MS)
        assert stage.written(NEAR) == [[b"one"]]
        assert stage.created == 2

    run(scene)


def test_what_can_never_be_written_is_given_up_and_reported() -> None:
    async def scene(stage: Stage) -> None:
        stage.others.create_topic(AUDIT_TOPIC, FAR, NEAR)
        stage.codes = [ErrorCode.MESSAGE_TOO_LARGE]
        stage.topic.add(["one\n", "two\n"])
        await settle()
        (first, report) = stage.written(NEAR)
        assert first == [b"one", b"two"]
        assert json.loads(report[0]) == {
            "time": stage.clock.now_ms(), "node": ME, "event": "dropped", "count": 2,
        }  # fmt: skip

    run(scene)


def test_what_does_not_fit_is_dropped_and_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit_topic, "BACKLOG_BYTES_MAX", 10)

    async def scene(stage: Stage) -> None:
        stage.topic.add(["12345\n", "67890\n", "x\n"])
        stage.topic.add(["y\n"])
        await settle()
        stage.others.create_topic(AUDIT_TOPIC, FAR, NEAR)
        await stage.passes(RETRY_MS)
        values = [value for request in stage.written(NEAR) for value in request]
        assert values[:2] == [b"12345", b"67890"]
        assert [json.loads(each)["count"] for each in values[2:]] == [2]

    run(scene)
    assert caplog.text.count("audit events are dropped") == 1


def test_a_stop_writes_what_is_left_but_does_not_wait_for_long() -> None:
    async def scene(stage: Stage) -> None:
        stage.topic.add(["one\n"])
        stopping = asyncio.ensure_future(stage.topic.stop())
        await settle()
        assert not stopping.done()
        for _ in range(STOP_MS_MAX // 10 + 1):
            await stage.passes(10)
        assert stopping.done()

    run(scene)
