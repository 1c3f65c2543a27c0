"""Methods that other Python clients have under other names, for helpful AttributeErrors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

__all__ = ["ADMIN", "CONSUMER", "PRODUCER", "SHARE_CONSUMER", "no_attribute"]

PRODUCER: Final = {
    "produce": "send(topic, value, key=...)",
    "poll": "nothing: delivery callbacks are called by the producer's own thread",
    "purge": "close(0), which drops what is not sent yet",
    "list_topics": "partitions_for(topic), or Admin.list_topics()",
    "send_and_wait": "send(topic, value).result()",
    "stop": "close()",
    "bootstrap_connected": "partitions_for(topic), which raises if no broker can be reached",
    "init": "init_transactions()",
}
CONSUMER: Final = {
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
SHARE_CONSUMER: Final = {
    name: CONSUMER[name] for name in ("consume", "commit", "getone", "getmany", "start", "stop")
}
ADMIN: Final = {
    "alter_configs": "incremental_alter_configs(configs)",
    "describe_consumer_group_offsets": "list_consumer_group_offsets(group_id)",
    "list_consumer_groups_offsets": "list_consumer_group_offsets(group_id)",
    "get_cluster_metadata": "describe_cluster()",
    "stop": "close()",
    "start": "nothing: the first call connects",
}


def no_attribute(owner: Any, name: str, others: Mapping[str, str]) -> NoReturn:
    """What a client's `__getattr__` ends with."""
    kind = type(owner).__name__
    message = f"{kind!r} object has no attribute {name!r}"
    if name in others:
        message += f"; use {others[name]}"
    raise AttributeError(message, name=name, obj=owner)
