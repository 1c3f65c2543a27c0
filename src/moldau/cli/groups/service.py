"""What the tools for share and streams groups share, and how a tool runs its action."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from moldau.cli.groups.group_queries import GroupCluster
from moldau.cli.groups.machine.layout import BARE, growing, spaced
from moldau.cli.groups.machine.offsets import OffsetPlanError
from moldau.cli.groups.options import has
from moldau.cli.support.java_errors import as_java, print_error
from moldau.cli.support.tables import Table, print_json
from moldau.client.errors import KafkaError

if TYPE_CHECKING:
    from moldau.client.admin import GroupListing, GroupState

__all__ = ["GroupService", "perform"]


def perform(action: Callable[[], None], arguments: argparse.Namespace, kind: str) -> bool:
    """Run an action; whether the cluster did not refuse it, which is a line. A plan that cannot be
    is bad usage."""
    try:
        action()
    except OffsetPlanError as error:
        arguments.parser.error(str(error))
    except KafkaError as error:
        print_error(f"Executing {kind} group command failed due to {as_java(error)}")
        return False
    return True


class GroupService(ABC):
    """The actions on one cluster."""

    #: Kafka's name for such groups, and its message for an ID of another group.
    kind: ClassVar[str]
    not_one: ClassVar[str]

    def __init__(
        self, cluster: GroupCluster, arguments: argparse.Namespace, states: frozenset[str]
    ) -> None:
        self._cluster = cluster
        self._admin = cluster.admin
        self._timeout = cluster.timeout
        self._arguments = arguments
        self._states = states

    @abstractmethod
    def _listed(self, states: set[GroupState]) -> Iterable[GroupListing]:
        """The groups of this kind in one of the states, in any without."""

    @abstractmethod
    def describe(self) -> None: ...

    @abstractmethod
    def delete(self) -> None: ...

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def delete_offsets(self) -> None: ...

    @property
    def actions(self) -> Mapping[str, Callable[[], None]]:
        """By option."""
        return {
            "--list": self.list_groups,
            "--describe": self.describe,
            "--delete": self.delete,
            "--reset-offsets": self.reset,
            "--delete-offsets": self.delete_offsets,
        }

    def list_groups(self) -> None:
        from moldau.client.admin import GroupState

        listings = list(self._listed({GroupState.parse(state) for state in self._states}))
        if self._arguments.json:
            print_json(
                [
                    {"group": each.group_id, "state": str(each.group_state or "Unknown")}
                    for each in listings
                ]
            )
        elif has(self._arguments, "--state"):
            table = Table("GROUP", "STATE", plain=spaced(growing(15), BARE, lead=False))
            for each in listings:
                table.add(each.group_id, each.group_state or "Unknown")
            table.show()
        else:
            for each in listings:
                print(each.group_id)

    def _group_ids(self) -> list[str]:
        if self._arguments.all_groups:
            return [each.group_id for each in self._listed(set())]
        return list(dict.fromkeys(self._arguments.group))

    def _deletable(self) -> tuple[list[str], dict[str, BaseException | str]]:
        """The wanted groups that can be deleted, and why others cannot."""
        listings = {each.group_id: each for each in self._listed(set())}
        ids = list(listings) if self._arguments.all_groups else self._group_ids()
        failed: dict[str, BaseException | str] = {}
        for group_id in ids:
            problem = self._why_not_deletable(group_id, listings.get(group_id))
            if problem is not None:
                failed[group_id] = problem
        return [group_id for group_id in ids if group_id not in failed], failed

    def _why_not_deletable(self, group_id: str, listing: GroupListing | None) -> str | None:
        if listing is None:
            return f"java.lang.IllegalArgumentException: Group '{group_id}' {self.not_one}"
        shown = f"{self.kind.capitalize()} group '{group_id}'"
        state = str(listing.group_state or "Empty")
        if state == "Dead":
            return f"java.lang.IllegalStateException: {shown} group state is DEAD."
        if state != "Empty":
            return f"org.apache.kafka.common.errors.GroupNotEmptyException: {shown} is not EMPTY."
        return None
