"""Records, offsets of partitions, and transactions."""

from __future__ import annotations

from uuid import UUID

from moldau.wire import messages as m
from moldau.wire.acls import AclOperation as Op
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from support.denials.rows import (
    BATCH,
    C31,
    G30,
    GROUP,
    HIDDEN,
    NO_PARTITION,
    NO_PRODUCER,
    T29,
    TOPIC,
    TXN,
    X53,
    cluster,
    group,
    row,
    topic,
    txn,
)


def produce(topic_id: UUID | None, index: int = NO_PARTITION) -> m.ProduceRequest:
    part = m.ProduceRequest.PartitionProduceData(index=index, records=BATCH)
    named = m.ProduceRequest.TopicProduceData(partition_data=[part])
    if topic_id is None:
        named.name = TOPIC
    else:
        named.topic_id = topic_id
    return m.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[named])


def fetch(topic_id: UUID | None, replica_id: int = -1) -> m.FetchRequest:
    part = m.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    named = m.FetchRequest.FetchTopic(partitions=[part])
    if topic_id is None:
        named.topic = TOPIC
    else:
        named.topic_id = topic_id
    return m.FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[named],
        session_epoch=-1,
    )  # fmt: skip


def _list_offsets() -> Message:
    part = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return m.ListOffsetsRequest(
        replica_id=-1, topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[part])]
    )


def _delete_records() -> Message:
    part = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=NO_PARTITION, offset=0)
    named = m.DeleteRecordsRequest.DeleteRecordsTopic(name=TOPIC, partitions=[part])
    return m.DeleteRecordsRequest(topics=[named], timeout_ms=1000)


def _epoch() -> Message:
    part = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    named = m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
    return m.OffsetForLeaderEpochRequest(topics=[named])


def _markers() -> Message:
    named = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(
        name=TOPIC, partition_indexes=[NO_PARTITION]
    )
    return m.WriteTxnMarkersRequest(
        markers=[m.WriteTxnMarkersRequest.WritableTxnMarker(producer_id=7, topics=[named])]
    )


DATA = (
    row(ApiKey.PRODUCE, 9, produce(None), (topic(Op.WRITE), T29)),
    row(ApiKey.PRODUCE, 9, produce(None, 0), (topic(Op.WRITE), T29), same=False),
    row(ApiKey.PRODUCE, 12, produce(None, 0), (topic(Op.WRITE), T29), same=False),
    row(ApiKey.PRODUCE, 13, produce, (topic(Op.WRITE), T29)),
    row(
        ApiKey.PRODUCE,
        13,
        lambda topic_id: produce(topic_id, 0),
        (topic(Op.WRITE), T29),
        same=False,
    ),
    row(ApiKey.FETCH, 12, fetch(None), (topic(Op.READ), T29)),
    row(ApiKey.FETCH, 17, fetch, (topic(Op.READ), T29)),
    row(ApiKey.LIST_OFFSETS, 6, _list_offsets(), (topic(Op.DESCRIBE), T29)),
    row(ApiKey.DELETE_RECORDS, 2, _delete_records(), (topic(Op.DELETE), T29)),
    row(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, _epoch(), (topic(Op.DESCRIBE), T29)),
    row(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        m.DescribeProducersRequest(
            topics=[m.DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])]
        ),
        (topic(Op.READ), T29),
    ),
    row(ApiKey.WRITE_TXN_MARKERS, 1, _markers(), (cluster(Op.CLUSTER_ACTION), C31)),
)


def _add_partitions() -> Message:
    named = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_topics=[named],
    )


def _add_partitions_of_broker() -> Message:
    named = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    transaction = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=TXN, producer_id=NO_PRODUCER, verify_only=True, topics=[named]
    )
    return m.AddPartitionsToTxnRequest(transactions=[transaction])


def _txn_offset_commit() -> Message:
    part = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
        partition_index=NO_PARTITION, committed_metadata=""
    )
    named = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part])
    return m.TxnOffsetCommitRequest(
        transactional_id=TXN, group_id=GROUP, producer_id=NO_PRODUCER, topics=[named]
    )


_WRITE_TXN = (txn(Op.WRITE), X53)
TRANSACTIONS = (
    row(
        ApiKey.INIT_PRODUCER_ID,
        5,
        m.InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=-5),
        _WRITE_TXN,
    ),
    row(ApiKey.INIT_PRODUCER_ID, 5, m.InitProducerIdRequest(transactional_id=None), same=False),
    row(ApiKey.ADD_PARTITIONS_TO_TXN, 3, _add_partitions(), _WRITE_TXN, (topic(Op.WRITE), T29)),
    row(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        5,
        _add_partitions_of_broker(),
        (cluster(Op.CLUSTER_ACTION), C31),
    ),
    row(
        ApiKey.ADD_OFFSETS_TO_TXN,
        4,
        m.AddOffsetsToTxnRequest(transactional_id=TXN, producer_id=NO_PRODUCER, group_id=GROUP),
        _WRITE_TXN,
        (group(Op.READ), G30),
    ),
    row(
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        _txn_offset_commit(),
        _WRITE_TXN,
        (group(Op.READ), G30),
        (topic(Op.READ), T29),
    ),
    row(
        ApiKey.END_TXN,
        5,
        m.EndTxnRequest(transactional_id=TXN, producer_id=NO_PRODUCER),
        _WRITE_TXN,
    ),
    row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        m.DescribeTransactionsRequest(transactional_ids=[TXN]),
        (txn(Op.DESCRIBE), X53),
    ),
    row(ApiKey.LIST_TRANSACTIONS, 1, m.ListTransactionsRequest(), (txn(Op.DESCRIBE), HIDDEN)),
)
