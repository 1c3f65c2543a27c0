"""How an operation on many things is brought to its end: whom it asks, what it asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from moldau.client import errors
from moldau.client.admin.driver import Answer, Call, Driver
from moldau.client.admin.routes import (
    AnyRoute,
    BrokerRoute,
    ControllerRoute,
    CoordinatorRoute,
    LeaderRoute,
)
from moldau.client.cluster import ClusterClient
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.machine.metadata import EMPTY
from moldau.client.network_settings import NetworkSettings
from moldau.client.results import Results
from moldau.client.topics import Node, TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

NODES = {number: Node(number, f"host-{number}", 9092) for number in (1, 2, 3)}


class FakeCluster(ClusterClient):
    """Answers calls from a function; knows three nodes, the second is the controller."""

    def __init__(self, respond: Callable[[int | None, Any], Any], **settings: Any) -> None:
        super().__init__(
            NetworkSettings(bootstrap=(), retry_backoff_ms=1, retry_backoff_max_ms=1, **settings)
        )
        self.metadata = EMPTY._replace(nodes=NODES, controller_id=2)
        self.respond = respond
        self.asked: list[tuple[int | None, Any]] = []
        self.refreshes = 0

    async def call(self, node: Any, request: Any, **options: Any) -> Any:
        return self._answer(node.id, request)

    async def call_any(self, request: Any, **options: Any) -> Any:
        return self._answer(None, request)

    async def refresh(self, topics: Any = None, *, deadline: Any = None) -> Any:
        self.refreshes += 1
        return self.metadata

    def request_refresh(self) -> None:
        self.refreshes += 1

    def _answer(self, node_id: int | None, request: Any) -> Any:
        self.asked.append((node_id, request))
        answer = self.respond(node_id, request)
        if isinstance(answer, Exception):
            raise answer
        return answer


def drive(
    cluster: FakeCluster, route: Any, keys: Sequence[Any], *, timeout: float = 5.0,
    retries: int = 100, **options: Any
) -> Results[Any, Any]:  # fmt: skip
    """Run an operation whose response maps keys to codes, 0 for success."""

    async def ask(call: Call, wanted: Sequence[Any]) -> Answer[Any, Any]:
        codes = await call(cast(Any, ("ask", list(wanted))))
        answer: Answer[Any, Any] = Answer()
        for key, code in codes.items():
            if code:
                answer.fail(key, code, "it failed")
            else:
                answer.put(key, None if call.node is None else call.node.id)
        return answer

    async def run() -> Results[Any, Any]:
        driver = Driver(cluster, timeout_ms=round(timeout * 1000), retries=retries)
        return await driver.run("Test", keys, route, ask, deadline=driver.deadline(None), **options)

    return asyncio.run(run())


def asked_keys(cluster: FakeCluster) -> list[tuple[int | None, list[Any]]]:
    return [(node, request[1]) for node, request in cluster.asked if isinstance(request, tuple)]


def test_only_keys_that_failed_in_passing_are_asked_for_again() -> None:
    rounds = [{"a": 0, "b": 41, "c": 36}, {"b": 0}]
    cluster = FakeCluster(lambda node, request: rounds.pop(0))
    results = drive(cluster, ControllerRoute(), ["a", "b", "c"])
    assert asked_keys(cluster) == [(2, ["a", "b", "c"]), (2, ["b"])]
    assert results.values_by_key == {"a": 2, "b": 2}
    assert isinstance(results.errors["c"], errors.TopicExistsError)
    assert cluster.refreshes >= 1


def test_item_that_timed_out_at_the_broker_is_not_repeated() -> None:
    cluster = FakeCluster(lambda node, request: {"a": ErrorCode.REQUEST_TIMED_OUT})
    results = drive(cluster, ControllerRoute(), ["a"])
    assert isinstance(results.errors["a"], errors.RequestTimedOutError)
    assert len(cluster.asked) == 1


def test_lost_call_is_repeated_and_unsupported_one_is_not() -> None:
    answers: list[Any] = [errors.DisconnectError("lost"), {"a": 0}]
    cluster = FakeCluster(lambda node, request: answers.pop(0))
    assert drive(cluster, AnyRoute(), ["a"]).errors == {}
    cluster = FakeCluster(lambda node, request: errors.UnsupportedVersionError("old"))
    results = drive(cluster, AnyRoute(), ["a"])
    assert isinstance(results.errors["a"], errors.UnsupportedVersionError)
    assert len(cluster.asked) == 1


def test_time_over_names_the_last_error() -> None:
    cluster = FakeCluster(lambda node, request: {"a": ErrorCode.NOT_CONTROLLER})
    results = drive(cluster, ControllerRoute(), ["a"], timeout=0.5)
    error = results.errors["a"]
    assert isinstance(error, errors.KafkaTimeoutError)
    assert "NOT_CONTROLLER" in str(error)
    assert isinstance(error.__cause__, errors.NotControllerError)


def test_time_over_names_what_it_was_spent_on() -> None:
    late = errors.RequestTimedOutError("could not be sent within 3 ms")
    answers: list[Any] = [errors.DisconnectError("nobody is there")]
    cluster = FakeCluster(lambda node, request: answers.pop() if answers else late)
    results = drive(cluster, AnyRoute(), ["a"], retries=3)
    assert "nobody is there" in str(results.errors["a"])


def test_retries_are_counted_and_a_quota_stays_what_it_is() -> None:
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster = FakeCluster(lambda node, request: {"a": code})
    results = drive(cluster, ControllerRoute(), ["a"], retries=2, retried=frozenset({code}))
    assert isinstance(results.errors["a"], errors.ThrottlingQuotaExceededError)
    assert len(cluster.asked) == 3


def test_what_is_missing_in_the_answer_is_an_error_and_what_is_too_much_is_dropped() -> None:
    cluster = FakeCluster(lambda node, request: {"a": 0, "stranger": 0})
    results = drive(cluster, AnyRoute(), ["a", "b"])
    assert list(results.values_by_key) == ["a"]
    assert isinstance(results.errors["b"], errors.UnknownServerError)


def test_refused_keys_are_not_asked_for_and_order_is_kept() -> None:
    cluster = FakeCluster(lambda node, request: dict.fromkeys(request[1], 36))
    refused = {"b": errors.InvalidTopicError("bad")}
    results = drive(cluster, AnyRoute(), ["a", "b", "c", "a"], refused=refused)
    assert asked_keys(cluster) == [(None, ["a", "c"])]
    assert list(results.errors) == ["a", "b", "c"]


def test_brokers_are_asked_at_the_same_time() -> None:
    cluster = FakeCluster(lambda node, request: dict.fromkeys(request[1], 0))
    results = drive(cluster, BrokerRoute(lambda key: key), [1, 3, None])
    assert asked_keys(cluster) == [(1, [1]), (3, [3]), (None, [None])]
    assert results.values_by_key == {1: 1, 3: 3, None: None}


def metadata(leaders: dict[int, int]) -> MetadataResponse:
    response = MetadataResponse
    return response(
        brokers=[
            response.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
            for node in NODES.values()
        ],
        topics=[
            response.MetadataResponseTopic(
                name="t",
                partitions=[
                    response.MetadataResponsePartition(
                        partition_index=index,
                        leader_id=leader,
                        error_code=0 if leader > 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                    )
                    for index, leader in leaders.items()
                ],
            )
        ],
    )


def test_leaders_are_looked_up_again_for_those_that_moved() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    pictures = [{0: 1, 1: 2}, {0: 1, 1: -1}, {0: 1, 1: 3}]

    def respond(node: int | None, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return metadata(pictures.pop(0))
        moved = node == 2
        return dict.fromkeys(request[1], ErrorCode.NOT_LEADER_OR_FOLLOWER if moved else 0)

    cluster = FakeCluster(respond)
    results = drive(cluster, LeaderRoute(), [first, second])
    assert results.values_by_key == {first: 1, second: 3}
    assert asked_keys(cluster) == [(1, [first]), (2, [second]), (3, [second])]


def test_partition_that_no_topic_has_is_waited_for() -> None:
    cluster = FakeCluster(lambda node, request: metadata({0: 1}))
    results = drive(cluster, LeaderRoute(), [TopicPartition("t", 9)], timeout=0.5)
    assert "t has no partition 9" in str(results.errors[TopicPartition("t", 9)])


def coordinators(names: dict[str, int]) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=name, node_id=node, host=NODES[node].host, port=NODES[node].port
            )
            for name, node in names.items()
        ]
    )


def test_coordinators_are_found_together_and_forgotten_when_they_moved() -> None:
    places = [{"a": 1, "b": 2, "c": 1}, {"b": 3}]
    finds: list[list[str]] = []

    def respond(node: int | None, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            finds.append(request.coordinator_keys)
            return coordinators(places.pop(0))
        if node == 2:
            return {"b": ErrorCode.NOT_COORDINATOR}
        return dict.fromkeys(request[1], 0)

    cluster = FakeCluster(respond)
    results = drive(cluster, CoordinatorRoute(CoordinatorType.GROUP), ["a", "b", "c"])
    assert finds == [["a", "b", "c"], ["b"]]
    assert results.values_by_key == {"a": 1, "b": 3, "c": 1}


def test_loading_coordinator_is_kept() -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0]
    finds = 0

    def respond(node: int | None, request: Any) -> Any:
        nonlocal finds
        if isinstance(request, FindCoordinatorRequest):
            finds += 1
            return coordinators({"a": 1})
        return {"a": codes.pop(0)}

    cluster = FakeCluster(respond)
    assert drive(cluster, CoordinatorRoute(CoordinatorType.GROUP), ["a"]).errors == {}
    assert finds == 1


def test_old_brokers_find_coordinators_one_by_one() -> None:
    def respond(node: int | None, request: Any) -> Any:
        if not isinstance(request, FindCoordinatorRequest):
            return dict.fromkeys(request[1], 0)
        if request.coordinator_keys:
            return errors.UnsupportedVersionError("no batches")
        number = int(request.key)
        return FindCoordinatorResponse(node_id=number, host=NODES[number].host, port=9092)

    cluster = FakeCluster(respond)
    results = drive(cluster, CoordinatorRoute(CoordinatorType.TRANSACTION), ["1", "3"])
    assert results.values_by_key == {"1": 1, "3": 3}


def test_controllers_refuse_what_only_brokers_serve() -> None:
    cluster = FakeCluster(lambda node, request: {"a": 0}, controllers=True)
    with pytest.raises(errors.UnsupportedEndpointTypeError):
        drive(cluster, ControllerRoute(), ["a"])
    assert drive(cluster, AnyRoute(of_controllers=True), ["a"]).values_by_key == {"a": 2}


def test_call_may_take_no_longer_than_the_operation_has() -> None:
    async def run() -> int:
        cluster = FakeCluster(lambda node, request: None)
        driver = Driver(cluster, timeout_ms=50, retries=1)
        call = Call(cluster, NODES[1], driver.deadline(None))
        await call(DescribeGroupsRequest())
        return call.timeout_ms

    assert 1 <= asyncio.run(run()) <= 50
