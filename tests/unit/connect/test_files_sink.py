"""Files of topics when their storage is away for a moment: each record is in one file."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import (
    ConfigDef,
    OffsetAndMetadata,
    RetriableError,
    SinkRecord,
    TopicPartition,
)
from moldau.connect.connectors.files.config import define_storage
from moldau.connect.connectors.files.formats import Format, FormatOptions, make_format
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage
from moldau.data import builders, logical
from moldau.data.struct import Struct

CONFIG = define_storage(ConfigDef(), format_class="JsonFormat")


class Shelf:
    """A storage in memory; of the next writes, those with a False fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.works: list[bool] = []

    def write(self, path: str, data: bytes) -> None:
        if self.works and not self.works.pop(0):
            raise RetriableError(f"{path} cannot be written")
        self.files[path] = data

    def close(self) -> None: ...

    def numbers(self) -> list[int]:
        """All that is stored, in order; what is there twice is there twice."""
        return sorted(json.loads(line)["n"] for each in self.files.values()
                      for line in each.splitlines())  # fmt: skip


class Context:
    errant_record_reporter = None

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, int] = {}

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets.update(offsets)


class ShelfTask(FilesSinkTask):
    """As S3 does it."""

    INTERVAL_NEEDS_TIME = True

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self.shelf = shelf

    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        return self.shelf, make_format(config["format.class"])


class Runner:
    """Puts the same records again as the worker does, after a request to read from elsewhere."""

    def __init__(self, *partitions: int, flush_size: int, **settings: str) -> None:
        self.shelf = Shelf()
        self.task = ShelfTask(self.shelf)
        self.context = Context()
        self.task.initialize(self.context)  # type: ignore[arg-type]
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.task.start({"topics": "t", "flush.size": str(flush_size), **given})
        self.task.open([TopicPartition("t", each) for each in partitions])

    def put(self, *offsets: tuple[int, range]) -> None:
        self.task.put([record(partition, n) for partition, each in offsets for n in each])

    def put_until_it_works(self, partition: int, offsets: range) -> None:
        while True:
            at = TopicPartition("t", partition)
            first = self.context.offsets.pop(at, offsets.start)
            try:
                self.put((partition, range(first, offsets.stop)))
                return
            except RetriableError:
                pass


def record(partition: int, number: int) -> SinkRecord:
    return SinkRecord("t", partition, number, value={"n": number + 1000 * partition})


@pytest.mark.parametrize("failing", range(4))
def test_a_storage_that_fails_at_any_file_of_a_batch_has_each_record_once(failing: int) -> None:
    """The first file has records of an earlier batch, which are not put again."""
    runner = Runner(0, flush_size=5)
    runner.put((0, range(4)))
    runner.shelf.works = [True] * failing + [False]
    runner.put_until_it_works(0, range(4, 22))
    assert runner.shelf.numbers() == list(range(20))
    assert sorted(path.rpartition("+")[2] for path in runner.shelf.files) == [
        f"{number:010d}.json" for number in (0, 5, 10, 15)
    ]


def test_a_commit_between_a_failure_and_the_new_attempt_loses_nothing() -> None:
    """Records of an earlier put are in no file any more, so they must not be committed."""
    runner = Runner(0, flush_size=5)
    at = TopicPartition("t", 0)
    runner.put((0, range(4)))
    runner.shelf.works = [False]
    with pytest.raises(RetriableError):
        runner.put((0, range(4, 8)))
    assert runner.task.pre_commit({at: OffsetAndMetadata(4)}) == {at: OffsetAndMetadata(0)}
    runner.put((0, range(8)))
    assert runner.task.pre_commit({at: OffsetAndMetadata(8)}) == {at: OffsetAndMetadata(5)}
    runner.put((0, range(8, 10)))
    assert runner.task.pre_commit({at: OffsetAndMetadata(10)}) == {at: OffsetAndMetadata(10)}


def test_a_failure_of_one_partition_leaves_no_double_in_the_others() -> None:
    runner = Runner(0, 1, flush_size=5)
    runner.put((0, range(4)), (1, range(4)))
    runner.shelf.works = [True, False]
    with pytest.raises(RetriableError):
        runner.put((0, range(4, 8)), (1, range(4, 8)))
    # The second one is read again from its first record; the batch of the first one comes again.
    assert runner.context.offsets == {TopicPartition("t", 1): 0}
    runner.put((0, range(4, 8)))
    runner.put((0, range(8, 10)), (1, range(10)))
    assert runner.shelf.numbers() == [*range(10), *range(1000, 1010)]


HOUR_MS = 3_600_000
BY_HOUR = {
    "partitioner_class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "timestamp_extractor": "RecordField",
    "timestamp_field": "at",
}


def timed(number: int, at_ms: int) -> SinkRecord:
    return SinkRecord("t", 0, number, value={"n": number, "at": at_ms})


def names(runner: Runner) -> list[str]:
    return sorted(path.removeprefix("topics/t/") for path in runner.shelf.files)


def test_the_size_of_a_flush_counts_all_folders_of_a_partition() -> None:
    runner = Runner(0, flush_size=3, **BY_HOUR)
    runner.task.put([timed(number, number * HOUR_MS) for number in range(4)])
    assert names(runner) == [
        f"year=1970/month=01/day=01/hour=0{number}/t+0+000000000{number}.json"
        for number in range(3)
    ]


def test_files_end_with_the_time_of_the_first_record_or_a_change_of_folder() -> None:
    minutes = [0, 20, 40, 70, 30, 50]
    for changes, wanted in (("true", [0, 2, 3, 4]), ("false", [0, 2, 3])):
        runner = Runner(
            0, flush_size=100, rotate_interval_ms="2400000",
            rotate_file_on_partition_change=changes, **BY_HOUR,
        )  # fmt: skip
        for number, minute in enumerate([*minutes, 300]):
            runner.task.put([timed(number, minute * 60_000)])
        stored = sorted(
            json.loads(line)["n"] for each in runner.shelf.files.values()
            for line in each.splitlines()
        )  # fmt: skip
        assert stored == list(range(6))
        assert sorted(int(name[-15:-5]) for name in names(runner)) == wanted


def test_the_interval_needs_a_partitioner_by_time(caplog: pytest.LogCaptureFixture) -> None:
    runner = Runner(0, flush_size=100, rotate_interval_ms="1000", timestamp_extractor="Record")
    assert "rotate.interval.ms has no effect" in caplog.text
    runner.put((0, range(5)))
    assert runner.shelf.files == {}


def test_the_interval_of_others_is_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShelfTask, "INTERVAL_NEEDS_TIME", False)
    runner = Runner(0, flush_size=100, rotate_interval_ms="1000")
    now = 0.0
    monkeypatch.setattr(time, "time", lambda: now)
    runner.put((0, range(3)))
    now = 0.999
    runner.put((0, range(3, 4)))
    assert runner.shelf.files == {}
    now = 1.0
    runner.put()
    assert runner.shelf.numbers() == list(range(4))


def test_folders_are_days_of_the_time_zone() -> None:
    settings = {
        **BY_HOUR, "timezone": "Asia/Tokyo",
        "partitioner_class": "io.confluent.connect.storage.partitioner.DailyPartitioner",
    }  # fmt: skip
    runner = Runner(0, flush_size=1, **settings)
    runner.task.put([timed(0, 20 * HOUR_MS), timed(1, 10 * HOUR_MS)])
    assert [name.partition("/t+")[0] for name in names(runner)] == [
        "year=1970/month=01/day=01",
        "year=1970/month=01/day=02",
    ]


@pytest.mark.parametrize(("decimals", "price"), [("BASE64", '"ew=="'), ("NUMERIC", "1.23")])
def test_json_is_that_of_the_json_converter(decimals: str, price: str) -> None:
    schema = builders.struct(
        {
            "price": logical.decimal(2),
            "day": logical.DATE,
            "clock": logical.TIME,
            "at": logical.TIMESTAMP,
            "raw": builders.BYTES,
        }
    )
    value = Struct(
        schema,
        {
            "price": Decimal("1.23"),
            "day": datetime.date(1970, 1, 3),
            "clock": datetime.time(0, 0, 1),
            "at": datetime.datetime(1970, 1, 1, 0, 0, 2, tzinfo=datetime.UTC),
            "raw": b"x",
        },
    )
    made = make_format("JsonFormat", FormatOptions(json_decimals=decimals))
    data = made.write(schema, [SinkRecord("t", 0, 0, value=value, value_schema=schema)])
    assert data.decode() == (f'{{"price":{price},"day":2,"clock":1000,"at":2000,"raw":"eA=="}}\n')
