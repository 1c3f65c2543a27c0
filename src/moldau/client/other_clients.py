"""Methods that other Python clients have under other names, for helpful AttributeErrors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

__all__ = ["ADMIN_NAMES", "CONSUMER_NAMES", "PRODUCER_NAMES", "SHARE_CONSUMER_NAMES", "point_from"]

C = TypeVar("C", bound=type[Any])

PRODUCER_NAMES: Final = {
    "produce": "send(topic, value, key=...)",
    "poll": "nothing: delivery callbacks are called by the producer's own thread",
    "purge": "close(0), which drops what is not sent yet",
    "list_topics": "partitions_for(topic), or Admin.list_topics()",
    "send_and_wait": "send(topic, value).result()",
    "stop": "close()",
    "bootstrap_connected": "partitions_for(topic), which raises if no broker can be reached",
    "init": "init_transactions()",
}
CONSUMER_NAMES: Final = {
    "consume": "poll(timeout), which returns all records that are there",
    "commit": "commit_sync() or commit_async()",
    "store_offsets": "enable_auto_commit=False and commit_sync(offsets)",
    "get_watermark_offsets": "beginning_offsets(partitions) and end_offsets(partitions)",
    "consumer_group_metadata": "group_metadata()",
    "memberid": "group_metadata().member_id",
    "incremental_assign": "assign(partitions), which keeps positions",
    "incremental_unassign": "assign(partitions), which keeps positions",
    "unassign": "unsubscribe()",
    "getone": "poll(timeout), or `for record in consumer`",
    "getmany": "poll(timeout)",
    "highwater": "end_offsets([partition])[partition]",
    "last_stable_offset": "end_offsets([partition]) with isolation_level='read_committed'",
    "partitions_for_topic": "partitions_for(topic)",
    "topics": "list_topics()",
    "poll_batch": "poll(timeout)",
    "start": "nothing: the first call connects",
    "stop": "close()",
    "bootstrap_connected": "list_topics(), which raises if no broker can be reached",
}
SHARE_CONSUMER_NAMES: Final = {
    name: CONSUMER_NAMES[name]
    for name in ("consume", "commit", "getone", "getmany", "start", "stop")
}
ADMIN_NAMES: Final = {
    "alter_configs": "incremental_alter_configs(configs)",
    "describe_consumer_group_offsets": "list_consumer_group_offsets(group_id)",
    "list_consumer_groups_offsets": "list_consumer_group_offsets(group_id)",
    "get_cluster_metadata": "describe_cluster()",
    "stop": "close()",
    "start": "nothing: the first call connects",
}


class _Elsewhere:
    """A name that another client has: there is no such attribute, and the error says what is."""

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}; use {self._instead}",
            name=self._name,
            obj=instance,
        )


def point_from(others: Mapping[str, str]) -> Callable[[C], C]:
    """Decorates a client with the names of other clients that its users may try.

    Not by a method `__getattr__`: with one, every access to an attribute takes the interpreter's
    slow way, which made `send` a quarter slower.
    """

    def decorate(client: C) -> C:
        for name, instead in others.items():
            setattr(client, name, _Elsewhere(name, instead))
        return client

    return decorate
