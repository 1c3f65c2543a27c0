"""Files of topics when their storage is away for a moment: each record is in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from moldau.connect.api import ConfigDef, RetriableError, SinkRecord, TopicPartition
from moldau.connect.connectors.files.config import define_storage
from moldau.connect.connectors.files.formats import Format, make_format
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage

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
    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self.shelf = shelf

    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        return self.shelf, make_format(config["format.class"])


class Runner:
    """Puts the same records again as the worker does, after a request to read from elsewhere."""

    def __init__(self, *partitions: int, flush_size: int) -> None:
        self.shelf = Shelf()
        self.task = ShelfTask(self.shelf)
        self.context = Context()
        self.task.initialize(self.context)  # type: ignore[arg-type]
        self.task.start({"topics": "t", "flush.size": str(flush_size)})
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
