"""How far groups are behind: in records, in seconds, growing or shrinking, and whether stuck.

Each round of the monitor gives the end of every partition and what each group has committed. The
seconds come from the ends themselves: the monitor remembers when a partition had which end, so the
lag in time is the age of the oldest end that a group has not reached. That needs no timestamps of
records, works for every kind of group, and starts with the first round. What was written before
that round has the age of the record itself, where somebody has read it (`unknown`, `learn`).

Invariants: at most `ENDS_MAX` ends are remembered per partition; a group that is at the end has a
lag of 0 in records and seconds and is never stuck; one that commits anything is not stuck.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

__all__ = ["GroupState", "LagTracker", "PartitionLag", "Place"]

ENDS_MAX: Final = 500
#: How many rounds the trend is taken from.
ROUNDS: Final = 12


class Place(NamedTuple):
    topic: str
    partition: int


class GroupState(NamedTuple):
    """One group in one round. `positions`: committed offsets, or where a share group starts."""

    group_id: str
    kind: str
    """classic, consumer, share or streams."""
    state: str
    members: frozenset[str]
    positions: dict[Place, int]
    lags: dict[Place, int] = {}  # noqa: RUF012
    """Where the coordinator itself counts what is left (share groups)."""
    assignor: str = ""
    """Which one a classic or consumer group uses now; it shows what the group is of."""


class PartitionLag(NamedTuple):
    group_id: str
    kind: str
    place: Place
    records: int
    seconds: float
    trend: float
    """Records per second that the lag grows, negative if it shrinks."""
    clears_in: float | None
    """Seconds until it is gone at this rate; None while it does not shrink."""
    stuck: bool


class _Ends:
    """When a partition first had which end."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._times: list[float] = []
        self.older: dict[int, float] = {}
        """When records before the first end were written, as far as it is known."""

    def add(self, offset: int, now_s: float) -> None:
        if self._offsets and offset < self._offsets[-1]:
            # Recreated or truncated: what was known of it is void.
            self._offsets.clear()
            self._times.clear()
            self.older.clear()
        if not self._offsets or offset > self._offsets[-1]:
            self._offsets.append(offset)
            self._times.append(now_s)
            if len(self._offsets) > ENDS_MAX:
                # Every second of the older half: still exact to a few rounds.
                half = ENDS_MAX // 2
                self._offsets[:half] = self._offsets[:half:2]
                self._times[:half] = self._times[:half:2]

    def reached_later(self, offset: int) -> float | None:
        """When the partition first went beyond this offset."""
        place = bisect_right(self._offsets, offset)
        if place == 0 and offset in self.older:
            return self.older[offset]
        return self._times[place] if place < len(self._times) else None

    def is_older(self, offset: int) -> bool:
        return bool(self._offsets) and offset < self._offsets[0]


class _Progress:
    """One group in one partition over the last rounds."""

    def __init__(self) -> None:
        self.rounds: deque[tuple[float, int]] = deque(maxlen=ROUNDS)
        self.position = -1
        self.moved_s = 0.0

    def add(self, now_s: float, records: int, position: int) -> None:
        if position != self.position or not records:
            self.position = position
            self.moved_s = now_s
        if self.rounds and self.rounds[-1][0] == now_s:
            self.rounds.pop()
        self.rounds.append((now_s, records))

    @property
    def trend(self) -> float:
        """The slope of the lag, by least squares."""
        count = len(self.rounds)
        if count < 2:
            return 0.0
        mean_s = sum(time_s for time_s, _ in self.rounds) / count
        mean = sum(records for _, records in self.rounds) / count
        spread = sum((time_s - mean_s) ** 2 for time_s, _ in self.rounds)
        if spread == 0:
            return 0.0
        return sum((time_s - mean_s) * (records - mean) for time_s, records in self.rounds) / spread


class _Membership:
    def __init__(self, members: frozenset[str], state: str) -> None:
        self.members = members
        self.state = state
        self.rebalances = 0


class LagTracker:
    """See the module."""

    def __init__(self, *, stuck_after_s: float = 60.0) -> None:
        """A group is stuck where it has records and commits nothing for so long."""
        self._stuck_after_s = stuck_after_s
        self._ends: dict[Place, _Ends] = {}
        self._progress: dict[tuple[str, Place], _Progress] = {}
        self._memberships: dict[str, _Membership] = {}
        self._unknown: set[tuple[Place, int]] = set()

    @property
    def unknown(self) -> frozenset[tuple[Place, int]]:
        """Positions of the last round whose next record is older than all that was observed."""
        return frozenset(self._unknown)

    def learn(self, place: Place, position: int, time_s: float) -> None:
        """When the record at a position was written; the next round counts from then."""
        if place in self._ends:
            self._ends[place].older[position] = time_s

    def observe(
        self, ends: dict[Place, int], groups: list[GroupState], now_s: float
    ) -> list[PartitionLag]:
        """One round; the lag of every group in every partition that it has a position in."""
        for place, offset in ends.items():
            self._ends.setdefault(place, _Ends()).add(offset, now_s)
        self._unknown.clear()
        found = [
            self._lag(group, place, position, ends, now_s)
            for group in groups
            for place, position in group.positions.items()
            if place in ends
        ]
        for group in groups:
            self._watch(group)
        self._forget(ends, groups)
        return found

    def rebalances(self, group_id: str) -> int:
        """How often its members changed, or it was seen rebalancing, since it is watched."""
        known = self._memberships.get(group_id)
        return 0 if known is None else known.rebalances

    def _lag(
        self,
        group: GroupState,
        place: Place,
        position: int,
        ends: dict[Place, int],
        now_s: float,
    ) -> PartitionLag:
        records = group.lags.get(place, max(0, ends[place] - position))
        progress = self._progress.setdefault((group.group_id, place), _Progress())
        progress.add(now_s, records, position)
        known = self._ends[place]
        since_s = known.reached_later(position) if records else None
        if records and known.is_older(position) and position not in known.older:
            self._unknown.add((place, position))
        trend = progress.trend
        return PartitionLag(
            group.group_id,
            group.kind,
            place,
            records,
            0.0 if since_s is None else max(0.0, now_s - since_s),
            trend,
            records / -trend if records and trend < 0 else (None if records else 0.0),
            bool(records) and now_s - progress.moved_s >= self._stuck_after_s,
        )

    def _watch(self, group: GroupState) -> None:
        known = self._memberships.get(group.group_id)
        if known is None:
            self._memberships[group.group_id] = _Membership(group.members, group.state)
            return
        is_rebalancing = group.state not in ("Stable", "Empty", "Dead")
        if group.members != known.members or (is_rebalancing and group.state != known.state):
            known.rebalances += 1
        known.members, known.state = group.members, group.state

    def _forget(self, ends: dict[Place, int], groups: list[GroupState]) -> None:
        """What is gone takes no memory."""
        kept = {(group.group_id, place) for group in groups for place in group.positions}
        self._progress = {key: each for key, each in self._progress.items() if key in kept}
        self._ends = {place: each for place, each in self._ends.items() if place in ends}
        held: dict[Place, set[int]] = {}
        for group in groups:
            for place, position in group.positions.items():
                held.setdefault(place, set()).add(position)
        for place, each in self._ends.items():
            if each.older:
                mine = held.get(place, set())
                each.older = {at: when for at, when in each.older.items() if at in mine}
        names = {group.group_id for group in groups}
        self._memberships = {
            name: each for name, each in self._memberships.items() if name in names
        }
