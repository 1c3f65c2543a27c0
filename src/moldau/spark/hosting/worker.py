"""What runs in Spark's Python worker: the task that does not end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moldau.spark.hosting.instance import HostedInstance
from moldau.spark.hosting.places import ApplicationPlaces

__all__ = ["COLUMN", "HostedRun"]

#: The one column of the rows that start instances: an instance's number.
COLUMN: Final = "value"


class HostedRun:
    """The argument of `mapInArrow`: each row of its input is an instance's number."""

    def __init__(self, folder: str, run: str) -> None:
        self._folder = folder
        self._run = run

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(COLUMN).to_pylist():
                places = ApplicationPlaces(self._folder)
                application = places.application()
                HostedInstance(places, application, self._run, number % application.instances).run()
            yield batch
