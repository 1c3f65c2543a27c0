"""What waits in a cache, and when it is passed on."""

from __future__ import annotations

from typing import Any

from moldau.streams import Materialized, StreamsBuilder
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.records import Produced
from moldau.streams.stores._cache import RecordCache


def task(cache: RecordCache, written: list[Produced], **store: Any) -> Task:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde="string", value_serde="string")
    counts = stream.group_by_key().count(store=Materialized(name="counts", **store))
    counts.to_stream().to("out", key_serde="string", value_serde="long")
    assembly = builder.build().assembly
    settings = TaskSettings(
        application_id="app", cache=cache, changelog_topic=lambda store: f"{store}-changelog"
    )
    made = Task(assembly.nodes.values(), assembly.stores, settings, written.append)
    made.initialize()
    return made


def feed(running: Task, keys: str) -> None:
    for offset, key in enumerate(keys):
        running.process("in", 0, offset, key=key.encode(), value=b"v", timestamp=offset)


def shown(written: list[Produced]) -> list[tuple[str, str, int, int]]:
    return [
        (each.topic, (each.key or b"").decode(), int.from_bytes(each.value or b""), each.timestamp)
        for each in written
    ]


def test_the_last_update_of_a_key_is_passed_on_at_a_commit_in_the_order_of_updates() -> None:
    cache, written = RecordCache(10_000), []
    running = task(cache, written)
    feed(running, "abcab")
    assert written == []
    assert running.store("counts").get("b") == (2, 4)
    offsets = running.prepare_commit()
    assert [each.offset for each in offsets.values()] == [5]
    assert [each for each in shown(written) if each[0] == "out"] == [
        ("out", "c", 1, 2),
        ("out", "a", 2, 3),
        ("out", "b", 2, 4),
    ]
    assert [each[1:] for each in shown(written) if each[0] == "counts-changelog"] == [
        each[1:] for each in shown(written) if each[0] == "out"
    ]
    assert cache.size_bytes == 0


def test_a_full_cache_passes_on_what_waits() -> None:
    written: list[Produced] = []
    running = task(RecordCache(150), written)
    feed(running, "aab")
    assert [each for each in shown(written) if each[0] == "out"] == []
    feed(running, "c")
    assert [each[1:3] for each in shown(written) if each[0] == "out"] == [
        ("a", 2),
        ("b", 1),
        ("c", 1),
    ]


def test_a_store_can_do_without() -> None:
    written: list[Produced] = []
    running = task(RecordCache(10_000), written, caching=False)
    feed(running, "aa")
    assert [each[2] for each in shown(written) if each[0] == "out"] == [1, 2]


def test_a_task_that_is_closed_frees_its_room_and_writes_nothing() -> None:
    cache, written = RecordCache(10_000), []
    running = task(cache, written)
    feed(running, "abc")
    assert cache.size_bytes > 0
    running.close()
    assert cache.size_bytes == 0
    assert written == []
