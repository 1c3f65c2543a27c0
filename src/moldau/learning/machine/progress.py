"""How far a reader is.

    started(name)   any exercise, also one that is done
    hinted(name)    a hint was shown
    solved(name)    the solution was run
    checked(name)   with all checks passed, the exercise is done
    forgotten(name) it is open again

Invariant: an exercise that is done stays done until it is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    current: str | None = None
    done: frozenset[str] = frozenset()
    with_hint: frozenset[str] = frozenset()
    with_solution: frozenset[str] = frozenset()

    def started(self, name: str) -> Progress:
        return replace(self, current=name)

    def hinted(self, name: str) -> Progress:
        return replace(self, with_hint=self.with_hint | {name})

    def solved(self, name: str) -> Progress:
        return replace(self, with_solution=self.with_solution | {name})

    def checked(self, name: str, *, passed: bool) -> Progress:
        return replace(self, done=self.done | {name}) if passed else self

    def forgotten(self, name: str) -> Progress:
        gone = {name}
        return replace(
            self,
            done=self.done - gone,
            with_hint=self.with_hint - gone,
            with_solution=self.with_solution - gone,
        )

    def following(self, names: Sequence[str]) -> str | None:
        """The first exercise after the current one that is open, else the first that is open."""
        position = names.index(self.current) + 1 if self.current in names else 0
        for name in (*names[position:], *names[:position]):
            if name not in self.done:
                return name
        return None

    def state_of(self, name: str) -> str:
        if name in self.done:
            return "solved for you" if name in self.with_solution else "done"
        return "current" if name == self.current else "open"

    def to_json(self) -> str:
        fields = {
            "current": self.current,
            "done": sorted(self.done),
            "with_hint": sorted(self.with_hint),
            "with_solution": sorted(self.with_solution),
        }
        return json.dumps(fields, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Progress:
        """What a file has; raises ValueError for anything else."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("progress is a JSON object")
        current = fields.get("current")
        sets = [fields.get(name, []) for name in ("done", "with_hint", "with_solution")]
        if not all(isinstance(each, list) for each in sets):
            raise ValueError("done, with_hint and with_solution are lists of names")
        done, with_hint, with_solution = (frozenset(map(str, each)) for each in sets)
        return cls(None if current is None else str(current), done, with_hint, with_solution)
