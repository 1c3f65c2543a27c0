"""What foreign clients were seen to depend on, or to see differently, asked over a plain socket.

With --against-kafka the same requests go to Apache Kafka, which shows that the tests are right.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

MANY_COORDINATORS_FROM = 4


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.port) as opened:
        yield opened


def create_topic(connection: RawConnection, name: str) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    assert connection.call(ApiKey.CREATE_TOPICS, 7, request).topics[0].error_code == 0


def find_coordinator(connection: RawConnection, version: int) -> FindCoordinatorResponse | None:
    """The answer, once it is not that a first request has only just begun to create the topic."""
    request = (
        FindCoordinatorRequest(key="g")
        if version < MANY_COORDINATORS_FROM
        else FindCoordinatorRequest(coordinator_keys=["g"])
    )
    answer: FindCoordinatorResponse = connection.call(ApiKey.FIND_COORDINATOR, version, request)
    codes = [answer.error_code, *(each.error_code for each in answer.coordinators)]
    return None if ErrorCode.COORDINATOR_NOT_AVAILABLE in codes else answer


@pytest.mark.parametrize("version", [1, 4])
def test_described_configs_carry_an_empty_error_message(
    connection: RawConnection, version: int
) -> None:
    name = f"described-{version}"
    create_topic(connection, name)
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name=name)
    request = DescribeConfigsRequest(resources=[resource])
    result = connection.call(ApiKey.DESCRIBE_CONFIGS, version, request).results[0]
    assert (result.error_code, result.error_message) == (0, "")


@pytest.mark.parametrize("version", [1, 3])
def test_an_old_answer_about_a_coordinator_names_no_error(
    connection: RawConnection, version: int
) -> None:
    answer = eventually(
        lambda: find_coordinator(connection, version), what="the offsets topic has leaders"
    )
    assert (answer.error_code, answer.error_message) == (0, "NONE")


@pytest.mark.parametrize("version", [4, 6])
def test_a_found_coordinator_has_an_empty_error_message(
    connection: RawConnection, version: int
) -> None:
    answer = eventually(
        lambda: find_coordinator(connection, version), what="the offsets topic has leaders"
    )
    assert [(each.error_code, each.error_message) for each in answer.coordinators] == [(0, "")]
