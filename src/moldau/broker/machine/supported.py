"""Settings of Kafka that this version does not support: rejected, never ignored.

A broker that silently ran without an authorizer or TLS would be worse than one that does not start.
"""

from __future__ import annotations

from moldau.broker.config import BrokerConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.config.errors import ConfigError

RACK_AWARE_SELECTOR = "RackAwareReplicaSelector"

#: Keys of which only the default is accepted, with what to do instead.
REFUSED = {
    # Replaced by the values that they give when a file is loaded: they never come this far.
    "config.providers": (
        "values are read from elsewhere only when a node starts: set it in the node's file"
    ),
    "group.share.persister.class.name": "Java plug-ins cannot be loaded: remove the key",
    "remote.log.storage.system.enable": (
        "there is no remote storage: remove the key to keep all segments on local disks"
    ),
}


def check_supported(config: BrokerConfig) -> None:
    """ConfigError that names the key and what to do instead."""
    for key, advice in REFUSED.items():
        if config[key] != BROKER_KEYS[key].default:
            _refuse(key, config.originals[key], advice)
    selector = config["replica.selector.class"]
    if selector and not selector.endswith(RACK_AWARE_SELECTOR):
        _refuse(
            "replica.selector.class",
            selector,
            f"Java plug-ins cannot be loaded: use {RACK_AWARE_SELECTOR} or remove the key",
        )


def _refuse(key: str, value: str, advice: str) -> None:
    raise ConfigError(
        f"Invalid value {value} for configuration {key}: {advice}", key=key, value=value
    )
