"""The broker that a test runs against: Moldau, or Apache Kafka with --against-kafka.

With --cluster it is three nodes of either.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support import asking
from support.cluster import cluster_kind
from support.cluster_stage import ClusterAsBroker
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.raw import RawConnection
from support.waiting import eventually


def either_broker(
    request: pytest.FixtureRequest, folder: Path, settings: Mapping[str, str]
) -> BrokerProcess:
    """Not started yet; its data is in `folder/data`. With --cluster, three nodes instead."""
    if request.config.getoption("--cluster"):
        return ClusterAsBroker(cluster_kind(request), folder, settings)
    if not request.config.getoption("--against-kafka"):
        return moldau(folder, [f"{key}={value}" for key, value in settings.items()])
    if reason := kafka_missing():
        pytest.skip(reason)
    return apache_kafka(folder, settings)


def create_and_wait(
    to: RawConnection, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Kafka answers before the broker has heard of a new topic and opened its logs."""
    asking.create_topic(to, name, partitions, config)
    for index in range(partitions):
        wait_for_leader(to, name, index)


def wait_for_leader(to: RawConnection, name: str, index: int = 0) -> None:
    eventually(
        lambda: asking.list_offset(to, name, index, asking.LATEST).error_code == 0,
        what=f"{name}-{index} has a leader",
    )
