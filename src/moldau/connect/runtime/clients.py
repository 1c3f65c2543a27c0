"""Settings of the clients that a worker makes for itself and for connectors.

From the worker: its own client settings, then `producer.`, `consumer.` and `admin.` ones. From the
connector: `producer.override.` and so on, as far as `connector.client.config.override.policy`
allows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moldau.client.config import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from moldau.config import ConfigDef
from moldau.connect.api import ConfigError
from moldau.connect.chain import with_prefix

_KEYS: dict[str, ConfigDef] = {
    "producer": PRODUCER_KEYS,
    "consumer": CONSUMER_KEYS,
    "admin": ADMIN_KEYS,
}
#: Keys that mean something else on a worker than on a client.
_NOT_FOR_CLIENTS = frozenset(
    {
        "group.id",
        "client.id",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "metric.reporters",
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "config.providers",
    }
)
_PRINCIPAL_KEYS = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


def worker_client(worker: Mapping[str, str], kind: str) -> dict[str, str]:
    """The worker's settings that are also ones of this kind of client."""
    keys = _KEYS[kind]
    return {
        key: value
        for key, value in worker.items()
        if key in keys and key not in _NOT_FOR_CLIENTS and value is not None
    }


def connector_client(
    worker: Mapping[str, str],
    kind: str,
    connector: Mapping[str, str],
    *,
    defaults: Mapping[str, str],
) -> dict[str, str]:
    """The settings of a client that works for a connector."""
    return {
        **worker_client(worker, kind),
        **defaults,
        **with_prefix(worker, f"{kind}."),
        **with_prefix(connector, f"{kind}.override."),
    }


def override_errors(
    policy: str, connector: Mapping[str, str], allowlist: Collection[str] = ()
) -> dict[str, str]:
    """The overrides that the worker's policy does not allow, with what is wrong, by key."""
    name = _policy_name(policy)
    allowed: dict[str, Collection[str]] = {
        "None": (),
        "Principal": _PRINCIPAL_KEYS,
        "Allowlist": allowlist,
    }
    if name not in allowed:
        return {}
    return {
        f"{kind}.override.{key}": f"The '{name}' policy does not allow '{key}' to be overridden in "
        "the connector configuration."
        for kind in _KEYS
        for key in with_prefix(connector, f"{kind}.override.")
        if key not in allowed[name]
    }


def check_policy(policy: str) -> None:
    """ConfigError for a policy that does not exist here."""
    if _policy_name(policy) not in ("All", "Allowlist", "None", "Principal"):
        raise ConfigError.invalid(
            "connector.client.config.override.policy",
            policy,
            "use All, Allowlist, None or Principal",
        )


def _policy_name(policy: str) -> str:
    return policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
