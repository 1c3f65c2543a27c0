"""Transition tables: which states of a machine may follow which, as data.

A machine checks each of its transitions against its table. The READMEs show the same tables, and a
test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Generic, TypeVar

from moldau.invariant import InvariantError, invariant

S = TypeVar("S", bound=Enum)


class Transitions(Generic[S]):
    """Invariant: the table has a row for every state that the machine can be in."""

    def __init__(
        self, table: Mapping[S, Iterable[S]], name: Callable[[S], str] = lambda state: state.name
    ) -> None:
        """`table` has the next states of each state; `name` is how a state is shown."""
        self._table = {before: frozenset(after) for before, after in table.items()}
        self._name = name
        for before, after in self._table.items():
            invariant(
                after <= self._table.keys(), f"a state that follows {name(before)} has no row"
            )

    @property
    def states(self) -> tuple[S, ...]:
        return tuple(self._table)

    def allows(self, before: S, after: S) -> bool:
        return after in self._table.get(before, ())

    def check(self, subject: str, before: S, after: S) -> None:
        """Raise InvariantError if `subject` may not go from `before` to `after`."""
        if not self.allows(before, after):
            raise InvariantError(
                f"{subject} cannot go from {self._name(before)} to {self._name(after)}"
            )

    def markdown(self) -> str:
        """The table as a README shows it."""
        rows = [
            f"| {self._name(before)} | {', '.join(self._shown(after)) or 'none'} |"
            for before, after in self._table.items()
        ]
        return "\n".join(("| state | next states |", "|---|---|", *rows))

    def _shown(self, states: frozenset[S]) -> list[str]:
        return [self._name(state) for state in self._table if state in states]
