"""Requests about transactions as handlers answer them, by version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moldau.broker.coordinator.transaction.machine.config import TransactionConfig
from moldau.broker.coordinator.transaction.machine.values import NO_PRODUCER
from moldau.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler
from moldau.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from moldau.broker.handlers.describe_transactions import DescribeTransactionsHandler
from moldau.broker.handlers.end_txn import EndTxnHandler
from moldau.broker.handlers.init_producer_id import InitProducerIdHandler
from moldau.broker.handlers.list_transactions import ListTransactionsHandler
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from support.transaction_world import P, World, play, settle


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5, "transactional_id": None}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"transaction_timeout_ms": 900_000}, ErrorCode.NONE),
        ({"producer_id": 5, "producer_epoch": 3}, ErrorCode.NONE),
        ({"transactional_id": None, "transaction_timeout_ms": -1}, ErrorCode.NONE),
    ],
)
def test_init_producer_id_request(fields: dict[str, Any], error: ErrorCode) -> None:
    async def scenario(world: World) -> None:
        request = {"transactional_id": "t", "transaction_timeout_ms": 5_000} | fields
        response = await InitProducerIdHandler(world.ids, world.coordinator).handle(
            context(ApiKey.INIT_PRODUCER_ID, 6), InitProducerIdRequest(**request)
        )
        assert response.error_code == error
        expected = (P, 0) if error is ErrorCode.NONE else NO_PRODUCER
        assert (response.producer_id, response.producer_epoch) == expected
        assert response.ongoing_txn_producer_id == -1

    play(scenario)


@pytest.mark.parametrize("version", range(7))
def test_without_a_transactional_id_everybody_is_new(version: int) -> None:
    async def scenario(world: World) -> None:
        handler = InitProducerIdHandler(world.ids, world.coordinator)
        where = context(ApiKey.INIT_PRODUCER_ID, version)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        for expected in (P, P + 1):
            response = await handler.handle(where, request)
            assert (response.producer_id, response.producer_epoch) == (expected, 0)
        world.ids.error = ApiError(ErrorCode.NOT_CONTROLLER, "as told")
        response = await handler.handle(where, request)
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (response.producer_id, response.producer_epoch) == NO_PRODUCER

    play(scenario)


def test_two_phase_commit_where_it_is_allowed() -> None:
    async def scenario(world: World) -> None:
        assert await world.coordinator.init_producer_id("t", 0, enable_two_phase_commit=True)
        described = await world.coordinator.describe_transaction("t")
        assert described.transaction_timeout_ms == 2_147_483_647

    play(scenario, transaction_two_phase_commit_enable=True)


@pytest.mark.parametrize(("version", "error"), [(3, 47), (4, 90)])
def test_fenced_inits_by_version(version: int, error: int) -> None:
    async def scenario(world: World) -> None:
        handler = InitProducerIdHandler(world.ids, world.coordinator)
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=5_000)
        for _ in range(3):
            await handler.handle(context(ApiKey.INIT_PRODUCER_ID, version), request)
        request.producer_id, request.producer_epoch = P, 0
        response = await handler.handle(context(ApiKey.INIT_PRODUCER_ID, version), request)
        assert response.error_code == error

    play(scenario)


@pytest.mark.parametrize("version", range(6))
def test_end_txn_by_version(version: int) -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        handler = EndTxnHandler(world.coordinator)
        request = EndTxnRequest(
            transactional_id="t", producer_id=P, producer_epoch=7, committed=True
        )
        where = context(ApiKey.END_TXN, version)
        response = await handler.handle(where, request)
        fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
        assert response.error_code == fenced
        assert (response.producer_id, response.producer_epoch) == NO_PRODUCER
        request.producer_epoch = 0
        for _ in range(2):
            response = await handler.handle(where, request)
            assert response.error_code == ErrorCode.NONE
            expected = (P, 1) if version >= 5 else NO_PRODUCER
            assert (response.producer_id, response.producer_epoch) == expected
            await settle()
        request.transactional_id = ""
        response = await handler.handle(where, request)
        assert response.error_code == ErrorCode.INVALID_REQUEST

    play(scenario)


def topics(**partitions: list[int]) -> list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
        for name, indexes in partitions.items()
    ]


def results(topic_results: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in topic_results
        for each in topic.results_by_partition
    }


@pytest.mark.parametrize("version", range(4))
def test_partitions_added_by_clients(version: int) -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 5_000)
        handler = AddPartitionsToTxnHandler(world.coordinator, world.topics)  # type: ignore[arg-type]
        where = context(ApiKey.ADD_PARTITIONS_TO_TXN, version)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=P,
            v3_and_below_producer_epoch=3,
            v3_and_below_topics=topics(a=[0, 1], b=[2]),
        )
        fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
        response = await handler.handle(where, request)
        everywhere = [("a", 0), ("a", 1), ("b", 2)]
        found = results(response.results_by_topic_v3_and_below)
        assert found == dict.fromkeys(everywhere, fenced)
        request.v3_and_below_producer_epoch = 0
        world.topics.missing = {("a", 1)}
        response = await handler.handle(where, request)
        assert results(response.results_by_topic_v3_and_below) == {
            ("a", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("a", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("b", 2): ErrorCode.OPERATION_NOT_ATTEMPTED,
        }
        assert await world.state() == "Empty"
        world.topics.missing.clear()
        response = await handler.handle(where, request)
        found = results(response.results_by_topic_v3_and_below)
        assert found == dict.fromkeys(everywhere, ErrorCode.NONE)
        described = await world.coordinator.describe_transaction("t")
        assert [(each.topic, each.partitions) for each in described.topics] == [
            ("a", [0, 1]),
            ("b", [2]),
        ]
        # A client of version 1 began it, so its end keeps the epoch.
        ended = await world.coordinator.end_transaction(
            "t", P, 0, committed=True, client_transaction_version=0
        )
        assert ended == NO_PRODUCER
        await settle()
        assert world.markers.written[0].transaction_version == 0

    play(scenario)


@pytest.mark.parametrize("version", [4, 5])
def test_partitions_added_and_verified_by_brokers(version: int) -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 5_000)
        await world.coordinator.init_producer_id("u", 5_000)
        handler = AddPartitionsToTxnHandler(world.coordinator, world.topics)  # type: ignore[arg-type]
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        request = AddPartitionsToTxnRequest(
            transactions=[
                transaction(transactional_id="t", producer_id=P, topics=topics(a=[0])),
                transaction(transactional_id="u", producer_id=P + 1, verify_only=True,
                            topics=topics(a=[0])),
                transaction(transactional_id="none", producer_id=9, topics=topics(b=[0])),
                transaction(transactional_id="", producer_id=9, topics=topics(b=[0])),
            ]
        )  # fmt: skip
        where = context(ApiKey.ADD_PARTITIONS_TO_TXN, version)
        response = await handler.handle(where, request)
        assert response.error_code == ErrorCode.NONE
        found = {
            each.transactional_id: set(results(each.topic_results).values())
            for each in response.results_by_transaction
        }
        assert found == {
            "t": {ErrorCode.NONE},
            "u": {ErrorCode.TRANSACTION_ABORTABLE},
            "none": {ErrorCode.INVALID_PRODUCER_ID_MAPPING},
            "": {ErrorCode.INVALID_REQUEST},
        }
        assert [await world.state(each) for each in "tu"] == ["Ongoing", "Empty"]

    play(scenario)


@pytest.mark.parametrize(("version", "fenced"), [(0, 47), (1, 47), (2, 90), (4, 90)])
def test_offsets_in_a_transaction(version: int, fenced: int) -> None:
    async def scenario(world: World) -> None:
        await world.coordinator.init_producer_id("t", 5_000)
        handler = AddOffsetsToTxnHandler(world.coordinator, lambda group_id: len(group_id))
        where = context(ApiKey.ADD_OFFSETS_TO_TXN, version)
        request = AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=P, producer_epoch=1, group_id="group"
        )
        assert (await handler.handle(where, request)).error_code == fenced
        request.producer_epoch = 0
        assert (await handler.handle(where, request)).error_code == ErrorCode.NONE
        await world.coordinator.end_transaction(
            "t", P, 0, committed=True, client_transaction_version=0
        )
        await settle()
        assert world.markers.written[0].partitions == (("__consumer_offsets", 5),)
        request.transactional_id = ""
        assert (await handler.handle(where, request)).error_code == ErrorCode.INVALID_REQUEST

    play(scenario)


def test_describe_transactions() -> None:
    async def scenario(world: World) -> None:
        await world.begin(1, 0)
        response = await DescribeTransactionsHandler(world.coordinator).handle(
            context(ApiKey.DESCRIBE_TRANSACTIONS, 0),
            DescribeTransactionsRequest(transactional_ids=["t", "none", ""]),
        )
        found, none, empty = response.transaction_states
        assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 60_000)
        assert (found.producer_id, found.producer_epoch) == (P, 0)
        assert found.transaction_start_time_ms == world.clock.now_ms()
        assert [(each.topic, each.partitions) for each in found.topics] == [("topic", [0, 1])]
        assert none.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert empty.error_code == ErrorCode.INVALID_REQUEST

    play(scenario)


@pytest.mark.parametrize(
    ("fields", "ids", "unknown"),
    [
        ({}, ["t", "app-1", "app-2"], []),
        ({"state_filters": ["Ongoing"]}, ["t"], []),
        ({"state_filters": ["Ongoing", "Empty", "empty"]}, ["t", "app-1", "app-2"], ["empty"]),
        ({"state_filters": ["Nothing"]}, [], ["Nothing"]),
        ({"state_filters": ["Dead", "PrepareEpochFence"]}, [], []),
        ({"producer_id_filters": [P, P + 2]}, ["t", "app-2"], []),
        ({"producer_id_filters": [P], "state_filters": ["Empty"]}, [], []),
        ({"duration_filter": 0}, ["t", "app-1", "app-2"], []),
        ({"duration_filter": 999}, ["t", "app-1", "app-2"], []),
        ({"duration_filter": 1_000}, ["app-1", "app-2"], []),
        ({"transactional_id_pattern": "app-."}, ["app-1", "app-2"], []),
        ({"transactional_id_pattern": "app"}, [], []),
        ({"transactional_id_pattern": ""}, ["t", "app-1", "app-2"], []),
    ],
)
def test_list_transactions(fields: dict[str, Any], ids: list[str], unknown: list[str]) -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        await world.coordinator.init_producer_id("app-1", 60_000)
        await world.coordinator.init_producer_id("app-2", 60_000)
        await world.clock.advance(1_000)
        response = await ListTransactionsHandler(world.coordinator).handle(
            context(ApiKey.LIST_TRANSACTIONS, 2), ListTransactionsRequest(**fields)
        )
        assert response.error_code == ErrorCode.NONE
        assert [each.transactional_id for each in response.transaction_states] == ids
        assert response.unknown_state_filters == unknown

    play(scenario)


def test_a_list_shows_no_state_that_may_be_lost() -> None:
    async def scenario(world: World) -> None:
        await world.begin()
        world.log.holding = True
        beginning = asyncio.ensure_future(world.coordinator.init_producer_id("app", 60_000))
        await settle()
        listing = asyncio.ensure_future(
            world.coordinator.list_transactions(ListTransactionsRequest())
        )
        await settle()
        assert not listing.done()
        world.log.holding = False
        world.log.commit()
        await beginning
        ids = [each.transactional_id for each in (await listing).transaction_states]
        assert ids == ["t", "app"]

    play(scenario)


def test_a_pattern_that_is_none() -> None:
    async def scenario(world: World) -> None:
        response = await world.coordinator.list_transactions(
            ListTransactionsRequest(transactional_id_pattern="(")
        )
        assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    play(scenario)


# Config.


def test_config_from_the_brokers() -> None:
    settings = {
        "transaction.max.timeout.ms": 1,
        "transactional.id.expiration.ms": 2,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 4,
        "transaction.state.log.load.buffer.size": 5,
        "transaction.two.phase.commit.enable": True,
        "request.timeout.ms": 6,
    }
    config = TransactionConfig.of(settings)
    assert config.transactional_id_expiration_ms == 2
    assert config.transaction_two_phase_commit_enable
