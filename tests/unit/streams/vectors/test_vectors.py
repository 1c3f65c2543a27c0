"""Every case of Kafka Streams 4.3's answers: topologies, records, stores, byte formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.streams import StreamsError, TopologyTestDriver, Window, Windowed
from moldau.streams.hosts.partitioning import default_partition
from moldau.streams.serdes import STRING, SessionWindowedSerde, TimeWindowedSerde
from moldau.streams.stores import formats
from moldau.streams.stores.base import TaskState
from moldau.streams.stores.disk import open_state

from .program import Program

FOLDER = Path(__file__).parents[4].parent / "shared" / "vectors" / "streams"
CONFIG = {
    "statestore.cache.max.bytes": 0,
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
}
MISSING = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no vectors in {FOLDER}")


def cases() -> list[Any]:
    if not FOLDER.is_dir():
        return []
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(FOLDER.glob("*.json"))
        if path.stem != "wire"
        for case in json.loads(path.read_text())
    ]


def wire_cases() -> list[Any]:
    path = FOLDER / "wire.json"
    return json.loads(path.read_text()) if path.is_file() else []


def shown(key: Any, value: Any, timestamp: int | None) -> dict[str, Any]:
    """A record or a row as the cases write it."""
    found: dict[str, Any] = {"key": key, "value": value}
    if isinstance(key, Windowed):
        found |= {"key": key.key, "window": list(key.window)}
    if timestamp is not None:
        found["ts"] = timestamp
    return found


class Run:
    """Runs a case on the test driver."""

    def __init__(self, case: dict[str, Any], state: TaskState | None = None) -> None:
        self._program = Program(case)
        sinks = [op["topic"] for op in case["topology"] if op["op"] == "to"]
        self._sinks = list(dict.fromkeys(sinks))
        windows = [op["window"]["type"] for op in case["topology"] if op["op"] == "windowedBy"]
        self._any_order = "sliding" in windows
        self.driver = TopologyTestDriver(
            self._program.topology,
            application_id="app",
            default_key_serde="string",
            default_value_serde="string",
            config=CONFIG,
            state=state,
        )

    def step(self, step: dict[str, Any]) -> None:
        if "advance_wall_ms" in step:
            self.driver.advance_wall_clock_time(step["advance_wall_ms"])
            return
        headers = tuple((name, value.encode()) for name, value in step.get("headers", ()))
        self.driver.input_topic(step["topic"]).pipe_input(
            step["key"], step["value"], timestamp=step["ts"], headers=headers
        )

    def outputs(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for topic in self._sinks:
            for record in self.driver.output_topic(topic).read_records():
                each = shown(record.key, record.value, record.timestamp)
                if record.headers:
                    each["headers"] = [[k, (v or b"").decode()] for k, v in record.headers]
                found.setdefault(topic, []).append(each)
        return self.ordered(found)

    def expected(self, step: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for record in step.get("out", ()):
            topic = record.get("topic", self._sinks[0])
            each = {name: value for name, value in record.items() if name != "topic"}
            found.setdefault(topic, []).append(each)
        return self.ordered(found)

    def ordered(
        self, found: dict[str, list[dict[str, Any]]]
    ) -> dict[str, list[dict[str, Any]]]:
        if not self._any_order:
            return found
        return {topic: sorted(each, key=json.dumps) for topic, each in _sorted_keys(found).items()}

    def store(self, name: str) -> list[dict[str, Any]]:
        rows = []
        for key, value in self.driver.state_store(name).all():
            if isinstance(value, tuple):
                rows.append(shown(key, value[0], value[1]))
            else:
                rows.append(shown(key, value, None))
        return rows


def _sorted_keys(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {
        topic: [dict(sorted(record.items())) for record in records]
        for topic, records in found.items()
    }


@MISSING
@pytest.mark.parametrize("case", cases())
def test_case_of_kafka_streams(case: dict[str, Any]) -> None:
    run_case(case, None)


@MISSING
@pytest.mark.parametrize("case", [each for each in cases() if "error" not in each.values[0]])
def test_case_with_stores_on_disk(case: dict[str, Any], tmp_path: Path) -> None:
    """Every commit is written, so that all reads but those of a record's own writes are of disk."""
    run_case(case, open_state(tmp_path / "0_0", batch_bytes=0))


def run_case(case: dict[str, Any], state: TaskState | None) -> None:
    error = case.get("error")
    if error is not None and error["at"] == "build":
        kind = ValueError if error["class"] == "IllegalArgumentException" else StreamsError
        with pytest.raises(kind) as raised:
            Program(case)
        assert str(raised.value) == error["message"]
        return
    run = Run(case, state)
    program = run._program
    for names, wanted in program.split_names:
        assert names == sorted(wanted)
    if "describe" in case:
        assert program.topology.describe() == case["describe"]
    for number, step in enumerate(case.get("inputs", ())):
        if error is not None and error["at"] == f"input {number}":
            with pytest.raises(StreamsError) as raised:
                run.step(step)
            assert str(raised.value) == error["message"]
            # The size of a buffered record is an estimate, and counts other things here.
            wanted = error["cause_message"].split(" records and")[0]
            assert str(raised.value.__cause__).startswith(wanted)
            return
        run.step(step)
        assert run.outputs() == run.expected(step), f"input {number}: {step}"
    for name, rows in (case.get("stores") or {}).items():
        assert run.store(name) == rows, name
    if "dropped" in case:
        assert run.driver.dropped_records == case["dropped"]
    run.driver.close()


def wire_bytes(case: dict[str, Any]) -> bytes | None:
    kind = case["kind"]
    key = case["key"].encode() if "key" in case else b""
    start, end = case.get("window", (0, 0))
    if kind == "time_windowed_topic_key":
        serde = TimeWindowedSerde(STRING, end - start)
        windowed = Windowed(case["key"], Window(start, end))
        assert serde.deserialize("t", serde.serialize("t", windowed)) == windowed
        return serde.serialize("t", windowed)
    if kind == "session_windowed_topic_key":
        sessions = SessionWindowedSerde(STRING)
        windowed = Windowed(case["key"], Window(start, end))
        assert sessions.deserialize("t", sessions.serialize("t", windowed)) == windowed
        return sessions.serialize("t", windowed)
    if kind == "window_store_changelog_key":
        return formats.window_store_key(key, start, case["seqnum"])
    if kind == "session_store_changelog_key":
        return formats.session_store_key(key, start, end)
    if kind == "timestamped_value":
        value = None if case["value"] is None else case["value"].encode()
        return formats.timestamped_value(value, case["ts"])
    new, old = (None if case[each] is None else case[each].encode() for each in ("new", "old"))
    data = formats.change_value(new, old)
    assert formats.read_change_value(data) == (new, old)
    return data


@MISSING
@pytest.mark.parametrize("case", wire_cases(), ids=json.dumps)
def test_bytes_of_kafka_streams(case: dict[str, Any]) -> None:
    if case["kind"] == "murmur2_partition":
        for count, partition in case["partition"].items():
            assert default_partition(case["key"].encode(), int(count)) == partition
        return
    data = wire_bytes(case)
    assert (None if data is None else data.hex()) == case["hex"]
