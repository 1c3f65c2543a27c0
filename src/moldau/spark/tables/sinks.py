"""What every table that is written through Python offers: the four steps of a batch.

On the driver `prepare` makes the table ready for the rows' columns; each task's `write` stages its
rows where no reader sees them; on the driver `commit` makes all of them visible at once, together
with the batch's number, or finds that they are there already; `abort` removes what was staged, of a
batch that cannot have been committed.
None of these knows Spark, so each can be called, and crashed, by a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.installation import pip_install
from moldau.spark.tables.machine.batches import Attempt


@dataclass(frozen=True, slots=True)
class Staged:
    """What one task has staged: `parts` are the sink's own descriptions of it."""

    attempt: Attempt
    row_count: int
    parts: tuple[Any, ...]
    rejected: tuple[Any, ...] = ()


class TableSink(Protocol):
    @property
    def keeps_staged(self) -> bool:
        """Whether what was staged becomes part of the table as it is, so that it must not be
        removed once the commit may have begun."""

    def prepare(self) -> None: ...

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged: ...

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        """False if the batch had been committed before, so that nothing was done."""

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None: ...


def missing_extra(package: str) -> ImportError:
    return ImportError(f"{package} is not installed: {pip_install('spark')}")
