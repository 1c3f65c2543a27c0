"""ACLs indexed by the resources that they cover.

Invariants: which ACLs cover a resource is found in as many lookups as prefixed ACLs have different
lengths (at most the length of the name), however many ACLs there are.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from uuid import UUID

from moldau.broker.metadata.machine.acl_model import Acl
from moldau.wire.acls import WILDCARD, PatternType

_Place = tuple[int, int, str]


class AclIndex:
    def __init__(self) -> None:
        self._by_id: dict[UUID, Acl] = {}
        self._by_place: dict[_Place, dict[UUID, Acl]] = {}
        # Per resource type the different lengths of prefixes, ascending, with their numbers.
        self._lengths: dict[int, list[int]] = {}
        self._length_counts: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, acl_id: UUID, acl: Acl) -> None:
        self.remove(acl_id)
        self._by_id[acl_id] = acl
        place = _place(acl)
        here = self._by_place.get(place)
        if here is None:
            here = self._by_place[place] = {}
            if acl.pattern_type == PatternType.PREFIXED:
                self._count_length(acl, 1)
        here[acl_id] = acl

    def remove(self, acl_id: UUID) -> None:
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return
        place = _place(acl)
        here = self._by_place[place]
        del here[acl_id]
        if not here:
            del self._by_place[place]
            if acl.pattern_type == PatternType.PREFIXED:
                self._count_length(acl, -1)

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        return (acl for acl in self._by_id.values() if acl.resource_type == resource_type)

    def covering(self, resource_type: int, name: str) -> Iterator[Acl]:
        """The ACLs whose pattern covers this resource."""
        found = self._by_place
        yield from found.get((resource_type, PatternType.LITERAL, name), {}).values()
        if name != WILDCARD:
            yield from found.get((resource_type, PatternType.LITERAL, WILDCARD), {}).values()
        for length in self._lengths.get(resource_type, ()):
            if length > len(name):
                return
            prefix = name[:length]
            yield from found.get((resource_type, PatternType.PREFIXED, prefix), {}).values()

    def _count_length(self, acl: Acl, change: int) -> None:
        lengths = self._lengths.setdefault(acl.resource_type, [])
        length = len(acl.resource_name)
        key = (acl.resource_type, length)
        count = self._length_counts.get(key, 0) + change
        if count == 0:
            del self._length_counts[key]
            lengths.remove(length)
            return
        if key not in self._length_counts:
            insort(lengths, length)
        self._length_counts[key] = count


def _place(acl: Acl) -> _Place:
    return (acl.resource_type, acl.pattern_type, acl.resource_name)
