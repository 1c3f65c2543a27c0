"""One run of the benchmarks: which servers it measures, at what scale, and the rows it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from bench import servers
from bench.servers import Server


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `limit` is what the machine could do, `aim` what we want."""

    what: str
    unit: str
    moldau: float
    kafka: float | None = None
    limit: float | None = None
    aim: str = ""


@dataclass(slots=True)
class Run:
    """Scale and choice of servers for one run."""

    scale: float
    with_kafka: bool
    rows: list[Row] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return ("moldau", "kafka") if self.with_kafka else ("moldau",)

    def brokers(self, *overrides: str) -> Iterator[Callable[[], AbstractContextManager[Server]]]:
        yield partial(servers.moldau, *overrides)
        if self.with_kafka:
            yield partial(servers.apache_kafka, *overrides)

    def bytes(self, gigabytes: float) -> int:
        return int(gigabytes * self.scale * 1e9)
