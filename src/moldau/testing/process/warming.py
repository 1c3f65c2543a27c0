"""What a node would make at its first request, made in the template while it has nothing to do.

Codecs of messages are made when a message is first used, some milliseconds each; nodes forked from
a template that has them find them made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import WireError

__all__ = ["warm_codecs"]

#: What nodes say to each other when a cluster starts, then what clients begin with.
_FIRST: Final = (
    ApiKey.API_VERSIONS,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.FETCH,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.METADATA,
    ApiKey.CREATE_TOPICS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.PRODUCE,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.LEAVE_GROUP,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
)


def warm_codecs() -> Iterator[None]:
    """One message at a time."""
    for key in _FIRST:
        api = API_BY_KEY[key]
        for message in (api.request, api.response):
            with suppress(WireError):
                decode(message, api.max_version, encode(message(), api.max_version))
            yield
