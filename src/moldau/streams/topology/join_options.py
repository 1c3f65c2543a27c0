"""What can be said about a join, beside what is joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict

from moldau.streams.machine.definitions import Partitioner
from moldau.streams.serdes import SerdeLike
from moldau.streams.stores.base import StoreOptions
from moldau.streams.topology.handles import Materialized
from moldau.streams.windows import Duration, JoinWindows


class StreamJoined(NamedTuple):
    """The stores of a join of two streams.

    StreamJoined(name="clicks", persistent=False) gives both a name to begin with; `this` and
    `other` give each a name and options of its own: StreamJoined(this=Materialized(name="left")).
    """

    name: str | None = None
    this: Materialized | None = None
    other: Materialized | None = None
    logging: bool = True
    changelog_config: Mapping[str, str] = {}
    persistent: bool | None = None

    @property
    def options(self) -> StoreOptions:
        """Of the stores that have none of their own."""
        return {
            "logging": self.logging,
            "changelog_config": self.changelog_config,
            "persistent": self.persistent,
        }


class StreamJoinOptions(TypedDict, total=False):
    """Of a join of a stream."""

    #: For a join with a stream: how far apart records may be.
    windows: JoinWindows | None
    #: For a join with a global table: the key to look up, of a record's key and value.
    key: Callable[[Any, Any], Any] | None
    #: For a join with a versioned table: how long records wait.
    grace: Duration | None
    #: Whether the joiner gets the key first.
    with_key: bool
    #: For a join with a stream: its stores, or what their names begin with.
    store: str | StreamJoined | None
    name: str | None
    key_serde: SerdeLike | None
    #: Of this stream, and of the other one.
    value_serde: SerdeLike | None
    other_value_serde: SerdeLike | None


class TableJoinOptions(TypedDict, total=False):
    """Of a join of a table, which may be by a foreign key."""

    #: The key of the other table, of a row or, with `with_key`, of its key and the row.
    foreign_key: Callable[..., Any] | None
    with_key: bool
    store: str | Materialized | None
    name: str | None
    #: How this table and the other one are partitioned, if not by the default: functions of topic,
    #: key, `None` and the number of partitions, for a join by a foreign key.
    partitioner: Partitioner | None
    other_partitioner: Partitioner | None
