"""Functions that were made in advance, imported on first use. Made by tools/generate_codecs.py; edit what it is made from instead."""

from __future__ import annotations

from importlib import import_module

from moldau.wire.codec_functions import Decoder, Encoder

_MODULES_OF_ENCODERS = {
    ("AddOffsetsToTxnRequest", 4): "add_offsets_to_txn",
    ("AddPartitionsToTxnRequest", 5): "add_partitions_to_txn",
    ("ApiVersionsRequest", 4): "api_versions",
    ("ConsumerGroupHeartbeatRequest", 1): "consumer_group_heartbeat",
    ("CreateTopicsRequest", 7): "create_topics",
    ("DescribeGroupsRequest", 6): "describe_groups",
    ("EndTxnRequest", 5): "end_txn",
    ("FetchRequest", 18): "fetch",
    ("FindCoordinatorRequest", 6): "find_coordinator",
    ("GetTelemetrySubscriptionsRequest", 0): "get_telemetry_subscriptions",
    ("HeartbeatRequest", 4): "heartbeat",
    ("InitProducerIdRequest", 5): "init_producer_id",
    ("JoinGroupRequest", 9): "join_group",
    ("ListOffsetsRequest", 11): "list_offsets",
    ("MetadataRequest", 13): "metadata",
    ("OffsetCommitRequest", 9): "offset_commit",
    ("OffsetFetchRequest", 9): "offset_fetch",
    ("ProduceRequest", 13): "produce",
    ("StreamsGroupHeartbeatRequest", 0): "streams_group_heartbeat",
    ("SyncGroupRequest", 5): "sync_group",
    ("TxnOffsetCommitRequest", 5): "txn_offset_commit",
}


def ready_encoder(message: str, version: int) -> Encoder | None:
    module = _MODULES_OF_ENCODERS.get((message, version))
    if module is None:
        return None
    module = f"{__name__}.{module}"
    encoder: Encoder = import_module(module).encode
    return encoder


_MODULES_OF_DECODERS = {
    ("AddOffsetsToTxnResponse", 4): "add_offsets_to_txn",
    ("AddPartitionsToTxnResponse", 5): "add_partitions_to_txn",
    ("ApiVersionsResponse", 4): "api_versions",
    ("ConsumerGroupHeartbeatResponse", 1): "consumer_group_heartbeat",
    ("CreateTopicsResponse", 7): "create_topics",
    ("DescribeGroupsResponse", 6): "describe_groups",
    ("EndTxnResponse", 5): "end_txn",
    ("FindCoordinatorResponse", 6): "find_coordinator",
    ("GetTelemetrySubscriptionsResponse", 0): "get_telemetry_subscriptions",
    ("HeartbeatResponse", 4): "heartbeat",
    ("InitProducerIdResponse", 5): "init_producer_id",
    ("JoinGroupResponse", 9): "join_group",
    ("ListOffsetsResponse", 11): "list_offsets",
    ("MetadataResponse", 13): "metadata",
    ("OffsetCommitResponse", 9): "offset_commit",
    ("OffsetFetchResponse", 9): "offset_fetch",
    ("ProduceResponse", 13): "produce",
    ("StreamsGroupHeartbeatResponse", 0): "streams_group_heartbeat",
    ("SyncGroupResponse", 5): "sync_group",
    ("TxnOffsetCommitResponse", 5): "txn_offset_commit",
}


def ready_decoder(message: str, version: int) -> Decoder | None:
    module = _MODULES_OF_DECODERS.get((message, version))
    if module is None:
        return None
    module = f"{__name__}.{module}"
    decoder: Decoder = import_module(module).decode
    return decoder
