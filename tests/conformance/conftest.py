"""A broker for a module's tests, started as a user would start it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.either import either_broker
from support.processes import BrokerProcess

TEST_SECONDS_MAX = 900
# The longest files begin first, so that at the end no worker is left alone with one of them.
LONGEST_FIRST = [
    f"test_{name}.py"
    for name in (
        "exactly_once", "cluster_clients", "streams_group", "semantics_sessions", "embedded",
        "groups_membership", "cluster_faults", "cluster_tools", "balance", "copies", "flows",
        "service_pages", "secured_clients", "platform", "examples_orders", "killed_broker",
        "scripts", "cluster_command", "cluster_bad_input", "cluster_disks", "testing_faults",
        "log_moves", "log_dirs", "share_group", "transactions_java", "kafka_folder",
        "kafka_controller", "same_streams_answers", "transaction_state_folder", "client_groups",
        "same_transaction_answers", "same_consumer_answers", "same_share_fetches",
        "groups_offsets", "protocol_change", "transactions_restarts", "cli_reassign", "instances",
        "audit_topic", "wire_behaviour_cuts", "java_client", "same_elections", "same_controller",
        "document_cluster", "testing", "same_answers", "readme", "cli_tour",
    )
]  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        # Else pytest-xdist would begin with the files of many tests, which are the short ones.
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(Path(item.path).name, len(LONGEST_FIRST)))
    for item in items:
        # Sessions of half a minute, with several brokers, on a machine that is busy with others.
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against-kafka",
        action="store_true",
        help="run the client sessions against Apache Kafka instead: shows that the tests are right",
    )
    parser.addoption(
        "--cluster",
        action="store_true",
        help="run scenarios on three nodes instead of one, with coordinators moving in between",
    )


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        # Tests write records of long ago, which would expire half a minute after the start.
        "log.retention.ms": "-1",
        # Members of newer groups hear of changes with a heartbeat, by default every five seconds.
        # librdkafka waits as long for an answer, so it is not shorter than a second.
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.assignment.interval.ms": "0",
        "group.share.min.heartbeat.interval.ms": "1000",
        "group.share.heartbeat.interval.ms": "1000",
        "group.share.assignment.interval.ms": "0",
    }
    with either_broker(request, tmp_path_factory.mktemp("broker"), settings) as process:
        yield process
