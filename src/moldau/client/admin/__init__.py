"""The admin client, AsyncAdmin on an event loop and Admin blocking, and the values it speaks of.

A name is looked for in the modules when it is first used: whoever needs some operations only, or
values of one kind, does not pay for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.client.admin.acl_values import *
    from moldau.client.admin.asynchronous import AsyncAdmin as AsyncAdmin
    from moldau.client.admin.base import Listings as Listings
    from moldau.client.admin.blocking import Admin as Admin
    from moldau.client.admin.cluster_values import *
    from moldau.client.admin.config_values import *
    from moldau.client.admin.group_values import *
    from moldau.client.admin.offset_values import *
    from moldau.client.admin.partition_values import *
    from moldau.client.admin.security_values import *
    from moldau.client.admin.topic_values import *
    from moldau.client.admin.transaction_values import *

#: Those with most users first.
_MODULES = (
    "topic_values",
    "offset_values",
    "config_values",
    "partition_values",
    "group_values",
    "acl_values",
    "cluster_values",
    "security_values",
    "transaction_values",
    "base",
    "asynchronous",
    "blocking",
)


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if name in module.__all__:
                globals()[name] = value = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
