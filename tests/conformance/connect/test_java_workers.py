"""Workers of Apache Kafka's Connect and ours: they read each other's topics, and form one group."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.client import Consumer
from support.connect_workers import call, distributed_worker
from support.java_workers import java_worker
from support.processes import BrokerProcess
from support.waiting import eventually

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def states(url: str, name: str) -> list[str]:
    found = call(url, "GET", f"/connectors/{name}/status")
    if found.status != 200:
        return []
    return [found.body["connector"]["state"], *(each["state"] for each in found.body["tasks"])]


def lines_of(bootstrap: str, topic: str, count: int) -> list[str]:
    found: list[str] = []

    def enough() -> bool:
        found.extend(each.value.decode() for each in consumer.poll(0.5))
        return len(found) >= count

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.partitions_for(topic), what=f"the topic {topic}")
        consumer.assign([(topic, each.partition) for each in consumer.partitions_for(topic)])
        eventually(enough, what=f"{count} lines in {topic}")
    return found


@pytest.mark.long("starts Apache Kafka's Connect, a JVM that takes half a minute")
def test_each_continues_what_the_other_has_begun(broker: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("ours\n")
    config = {"connector.class": SOURCE, "file": str(file), "topic": "shared"}
    with distributed_worker(broker.bootstrap, "both") as worker:
        assert worker.call("PUT", "/connectors/lines/config", config).status == 201
        worker.wait_for("lines", "RUNNING", "RUNNING")
        assert lines_of(broker.bootstrap, "shared", 1) == ["ours"]
    with file.open("a") as more:
        more.write("java's\n")
    with java_worker(broker.bootstrap, "both", tmp_path) as url:
        eventually(lambda: states(url, "lines") == ["RUNNING", "RUNNING"], what="Java to run it")
        assert call(url, "GET", "/connectors/lines/config").body == {**config, "name": "lines"}
        assert lines_of(broker.bootstrap, "shared", 2) == ["ours", "java's"]
        wanted = {"partition": {"filename": str(file)}, "offset": {"position": 12}}
        eventually(
            lambda: call(url, "GET", "/connectors/lines/offsets").body == {"offsets": [wanted]},
            what="Java's offsets",
        )
        assert call(url, "PUT", "/connectors/lines/pause").status == 202
        eventually(lambda: states(url, "lines") == ["PAUSED", "PAUSED"], what="it to pause")
    with file.open("a") as more:
        more.write("ours again\n")
    with distributed_worker(broker.bootstrap, "both") as worker:
        worker.wait_for("lines", "PAUSED", "PAUSED")
        worker.call("PUT", "/connectors/lines/resume")
        assert lines_of(broker.bootstrap, "shared", 3) == ["ours", "java's", "ours again"]


@pytest.mark.long("starts Apache Kafka's Connect, a JVM that takes half a minute")
def test_a_group_of_both(broker: BrokerProcess, tmp_path: Path) -> None:
    """They share the connectors, whoever leads, and forward requests to each other."""
    names = [f"c{n}" for n in range(4)]
    with (
        distributed_worker(broker.bootstrap, "mixed") as ours,
        java_worker(broker.bootstrap, "mixed", tmp_path) as theirs,
    ):
        for n, name in enumerate(names):
            file = tmp_path / name
            file.write_text(f"{name}\n")
            config = {"connector.class": SOURCE, "file": str(file), "topic": "mixed"}
            url = (ours.url, theirs)[n % 2]
            made = eventually(
                lambda url=url, name=name, config=config: (  # type: ignore[misc]
                    answer
                    if (answer := call(url, "PUT", f"/connectors/{name}/config", config)).status
                    in (200, 201)
                    else None
                ),
                what=f"{name} to be created",
            )
            assert made.body["name"] == name

        def workers() -> set[str]:
            found = [call(ours.url, "GET", f"/connectors/{name}/status").body for name in names]
            if not all(
                each.get("tasks") and each["tasks"][0]["state"] == "RUNNING" for each in found
            ):
                return set()
            return {each["tasks"][0]["worker_id"] for each in found}

        both = {url.removeprefix("http://") for url in (ours.url, theirs)}
        eventually(lambda: workers() == both, what="both to run tasks")
        assert sorted(lines_of(broker.bootstrap, "mixed", 4)) == names
        for name in names:
            # Our states and theirs are the same.
            eventually(
                lambda name=name: states(ours.url, name) == states(theirs, name),  # type: ignore[misc]
                what="equal states",
            )
