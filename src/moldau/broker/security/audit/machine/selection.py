"""Which events are recorded.

Denied operations and failed authentications are never sampled away: only what is allowed is, and
then every nth event, so that a count times n is the total.
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from moldau.broker.security.audit.machine.events import Event, Kind


class Selection:
    def __init__(
        self,
        *,
        kinds: Collection[Kind] = frozenset(Kind),
        operations: Collection[str] = (),
        resources: Collection[str] = (),
        principals: Collection[str] = (),
        excluded_principals: Collection[str] = (),
        every: int = 1,
    ) -> None:
        """Empty collections mean all; resources and principals may have `*`. Of allowed operations
        one in `every` is recorded."""
        self._kinds = frozenset(kinds)
        self._operations = frozenset(operations)
        self._resources = tuple(resources)
        self._principals = tuple(principals)
        self._excluded = tuple(excluded_principals)
        self._every = every
        self._passed_over = every - 1

    def wants_kind(self, kind: Kind) -> bool:
        """Asked first: an event that nobody wants is not even made."""
        return kind in self._kinds

    def wants(self, event: Event) -> bool:
        """Always the same for the same event."""
        if event.kind not in self._kinds or not self._is_principal(event.principal):
            return False
        return not event.operation or self._is_operation(event)

    @property
    def sampled(self) -> bool:
        """Whether `takes_next` has to be asked."""
        return self._every > 1

    def takes_next(self) -> bool:
        """Whether the next allowed operation is in the sample."""
        if self._every == 1:
            return True
        self._passed_over += 1
        if self._passed_over < self._every:
            return False
        self._passed_over = 0
        return True

    def _is_principal(self, principal: str) -> bool:
        if any(fnmatchcase(principal, each) for each in self._excluded):
            return False
        return not self._principals or any(fnmatchcase(principal, x) for x in self._principals)

    def _is_operation(self, event: Event) -> bool:
        if self._operations and event.operation not in self._operations:
            return False
        return not self._resources or any(
            fnmatchcase(event.resource, each) for each in self._resources
        )
