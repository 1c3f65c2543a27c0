"""Settings of the clients that a worker makes for itself and for connectors.

From the worker: its own client settings, then `producer.`, `consumer.` and `admin.` ones. From the
connector: `producer.override.` and so on, as far as `connector.client.config.override.policy`
allows.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def override_errors(policy: str, connector: Mapping[str, str]) -> dict[str, str]:
    """The overrides that the worker's policy does not allow, with what is wrong, by key."""
    name = policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    found: dict[str, str] = {}
    for kind in _KEYS:
        for key in with_prefix(connector, f"{kind}.override."):
            full = f"{kind}.override.{key}"
            if name == "None":
                found[full] = (
                    f"None of the client overrides are allowed by the worker's policy, {policy}"
                )
            elif name == "Principal" and key not in _PRINCIPAL_KEYS:
                allowed = ", ".join(sorted(_PRINCIPAL_KEYS))
                found[full] = f"The 'Principal' policy does not allow '{key}'; only {allowed}"
    return found


def check_policy(policy: str) -> None:
    """ConfigError for a policy that does not exist here."""
    name = policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    if name not in ("All", "None", "Principal"):
        raise ConfigError.invalid(
            "connector.client.config.override.policy", policy, "use All, None or Principal"
        )
