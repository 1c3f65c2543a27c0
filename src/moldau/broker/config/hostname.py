"""The one place of configuration that asks the machine for its name.

Kafka advertises the canonical name of the local host where a listener has no host of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.listeners import Listener, resolve_listeners

__all__ = ["advertised_broker_listeners"]


def advertised_broker_listeners(
    config: BrokerConfig, bound_ports: Mapping[str, int]
) -> tuple[Listener, ...]:
    """What clients are told. The name is looked up only if needed: it may take a DNS query."""
    listeners = config.advertised_broker_listeners
    unnamed = any(not listener.host for listener in listeners)
    name = socket.getfqdn() if unnamed else ""
    return resolve_listeners(listeners, canonical_host_name=name, bound_ports=bound_ports)
