"""A pipeline on Spark's own connector shows how far it has read, as one on ours does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.pipelines import Pipelines, daemon
from moldau.spark import ConnectServer
from support.waiting import eventually


@pytest.fixture
def pipelines(server: ConnectServer, bootstrap: str) -> Iterator[Pipelines]:
    """On the run's own server: a loop beside it, which ends with the test."""
    folder = server.places.folder
    with Pipelines(bootstrap, folder=folder, timeout=300) as made:
        yield made
    daemon.stop(folder, timeout=300)


@pytest.mark.long("a Spark server of its own; our connector's group is in test_source")
@pytest.mark.slow("the Spark server starts with another connector")
def test_offsets_of_spark_s_own_connector_are_mirrored_to_a_group(
    pipelines: Pipelines, official: str, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    config = {"bootstrap.servers": bootstrap}
    with Admin(config) as admin, Producer(config) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        for number in range(5):
            producer.send(topic, value=b'{"id": %d}' % number)
        producer.flush()
        file = tmp_path / "mirrored.yaml"
        file.write_text(
            "name: mirrored\n"
            f"source: {{topic: {topic}, schema: 'id INT', startingOffsets: earliest}}\n"
            f"sink: {{json: {tmp_path / 'out'}}}\n"
            f"connector: {official}\n"
        )
        info = pipelines.start(file)
        assert info.connector == official

        def committed() -> list[int]:
            offsets = admin.list_consumer_group_offsets("mirrored")["mirrored"]
            return [offset.offset for offset in offsets.values() if offset is not None]

        eventually(
            lambda: committed() == [5],
            what="the group stands behind the last record",
            seconds_max=300,
        )
        progress = eventually(
            lambda: pipelines.show("mirrored").progress, what="a progress", seconds_max=300
        )
        assert progress is not None
        assert progress.lag_records == 0
        pipelines.delete("mirrored", checkpoint=True)
