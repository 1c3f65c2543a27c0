"""What of a plan is carried out now, where a cluster is balanced again and again.

Each round makes a plan for the cluster as it is and takes a part of it: what must move first, then
what gains most for its bytes. Invariants: a round changes at most `moves_max` partitions and copies
at most `bytes_max`; a partition that moved stays where it is for `cool_down_s`, unless its broker
is drained or its replicas share a rack; what is taken never makes the cluster less even. The time
is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moldau.balance.machine.model import Cluster, Constraints, Plan, Reassignment
from moldau.balance.machine.placement import Placement

__all__ = ["Bounds", "Chosen", "Rounds"]

_CANDIDATES_MAX = 500
"""Changes of a plan that are weighed against each other in one round."""
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one round; without `bytes_max` only the number of changes is bounded."""

    moves_max: int = 20
    bytes_max: float | None = None
    cool_down_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """A part of a plan, and why the rest of it is left for later."""

    reassignments: tuple[Reassignment, ...]
    cooling: int = 0
    """Partitions that moved a short time ago."""
    too_large: int = 0
    """Partitions that are larger than a round may copy: they never move."""
    later: int = 0
    """Partitions for the next rounds."""

    @property
    def bytes_moved(self) -> float:
        return sum(each.bytes_moved for each in self.reassignments)


class Rounds:
    """Remembers what moved."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._moved_s: dict[tuple[str, int], float] = {}

    def moved(self, reassignments: Iterable[Reassignment], now_s: float) -> None:
        """These were carried out."""
        oldest_s = now_s - self._bounds.cool_down_s
        self._moved_s = {key: at for key, at in self._moved_s.items() if at > oldest_s}
        for each in reassignments:
            self._moved_s[each.topic, each.partition] = now_s

    def choose(
        self,
        cluster: Cluster,
        planned: Plan,
        now_s: float,
        *,
        constraints: Constraints | None = None,
        tolerance: float,
    ) -> Chosen:
        """What of the plan to do now."""
        bounds = self._bounds
        round_ = _Round(Placement(cluster, constraints or Constraints(), tolerance))
        waiting: list[Reassignment] = []
        cooling = too_large = 0
        for each in planned.reassignments:
            if bounds.bytes_max is not None and each.bytes_moved > bounds.bytes_max:
                too_large += 1
            elif self._is_cooling(each, now_s) and not round_.must(each):
                cooling += 1
            else:
                waiting.append(each)
        taken = round_.take(waiting, bounds)
        later = len(waiting) - len(taken)
        return Chosen(tuple(taken), cooling, too_large, later)

    def _is_cooling(self, each: Reassignment, now_s: float) -> bool:
        at = self._moved_s.get((each.topic, each.partition))
        return at is not None and now_s - at < self._bounds.cool_down_s


def _fit(left: Sequence[Reassignment], bounds: Bounds) -> bool:
    size = sum(each.bytes_moved for each in left)
    return len(left) <= bounds.moves_max and (bounds.bytes_max is None or size <= bounds.bytes_max)


class _Round:
    """Weighs the changes of a plan on a placement."""

    def __init__(self, at: Placement) -> None:
        self._at = at
        self._brokers = {broker.id: number for number, broker in enumerate(at.brokers)}
        self._numbers = {(p.topic, p.number): number for number, p in enumerate(at.partitions)}

    def _number(self, each: Reassignment) -> int:
        return self._numbers[each.topic, each.partition]

    def _places(self, replicas: Sequence[int]) -> list[int]:
        return [self._brokers[each] for each in replicas]

    def must(self, each: Reassignment) -> bool:
        """Whether it is done for a drained broker, or for racks."""
        before, after = self._places(each.before), self._places(each.after)
        if not self._at.drained.isdisjoint(before):
            return True
        return self._at.rack_excess(before) > self._at.rack_excess(after)

    def take(self, waiting: Sequence[Reassignment], bounds: Bounds) -> list[Reassignment]:
        """What must be done comes in the order of the plan, the rest by what it gains."""
        musts = [each for each in waiting if self.must(each)]
        left = [each for each in waiting if not self.must(each)][:_CANDIDATES_MAX]
        taken: list[Reassignment] = []
        copied = 0.0
        while len(taken) < bounds.moves_max:
            room = None if bounds.bytes_max is None else bounds.bytes_max - copied
            fitting = [each for each in musts if room is None or each.bytes_moved <= room][:1]
            chosen = fitting[0] if fitting else self._best(left, room)
            if chosen is None:
                break
            (musts if fitting else left).remove(chosen)
            self._at.place(self._number(chosen), self._places(chosen.after))
            taken.append(chosen)
            copied += chosen.bytes_moved
        if not taken and _fit(left, bounds):
            # Each alone makes it worse, such as two that change places: all of them, or none.
            return left
        return taken

    def _best(self, left: Sequence[Reassignment], room: float | None) -> Reassignment | None:
        """The one that lowers the cost most per byte; None if none lowers it."""
        found: tuple[float, Reassignment] | None = None
        for each in left:
            if room is not None and each.bytes_moved > room:
                continue
            gain = self._gain(each)
            if gain <= _EQUAL:
                continue
            worth = gain / (1.0 + each.bytes_moved / self._at.mean_size)
            if found is None or worth > found[0]:
                found = worth, each
        return None if found is None else found[1]

    def _gain(self, each: Reassignment) -> float:
        at, number = self._at, self._number(each)
        before, kept = at.total_cost, list(at.replicas[number])
        at.place(number, self._places(each.after))
        gain = before - at.total_cost
        at.place(number, kept)
        return gain
