"""Transactions that no coordinator knows, as an old client could leave them."""

from __future__ import annotations

import time

from moldau.client import Admin
from moldau.client.admin import AlterConfigOp, ConfigResource
from moldau.wire.apis import ApiKey
from moldau.wire.messages import InitProducerIdRequest, ProduceRequest
from moldau.wire.records import Record, encode_batch
from support.raw import RawConnection
from support.waiting import eventually

_VERIFICATION = "transaction.partition.verification.enable"


def leave_unverified(admin: Admin) -> None:
    """Since Kafka 3.6 brokers ask the coordinator before the first write of a transaction: not so
    after this."""
    admin.incremental_alter_configs(
        {ConfigResource.broker(): [AlterConfigOp.set(_VERIFICATION, "false")]}
    )
    node = ConfigResource.broker(admin.describe_cluster().nodes[0].id)
    eventually(
        lambda: admin.describe_configs([node])[node][_VERIFICATION].value == "false",
        what="writes are not verified",
    )


def hang(port: int, topic: str) -> None:
    """Open a transaction in partition 0 an hour ago, and leave it."""
    with RawConnection(port) as to:
        given = to.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None))
        old_ms = time.time_ns() // 1_000_000 - 60 * 60_000
        batch = encode_batch(
            [Record(0, old_ms, None, b"v", ())],
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = ProduceRequest.TopicProduceData(
            name=topic,
            partition_data=[ProduceRequest.PartitionProduceData(index=0, records=bytes(batch))],
        )
        request = ProduceRequest(
            transactional_id="lost", acks=-1, timeout_ms=30_000, topic_data=[data]
        )

        def is_written() -> bool:
            answer = to.call(ApiKey.PRODUCE, 9, request)
            return bool(answer.responses[0].partition_responses[0].error_code == 0)

        # A topic that has just been created may have no leader yet, and a setting that can be read
        # may not be in effect.
        eventually(is_written, what="the record is written")
