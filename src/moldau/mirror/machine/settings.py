"""MirrorMaker 2's properties: which flows there are, and what each of them is set to.

A flow's settings are flat, as those of MirrorMaker 2's connectors: `source.cluster.*` and
`target.cluster.*` for addresses and security, `consumer.*`, `producer.*` and `admin.*` for clients
(`source.consumer.*` for one side), and the keys of `keys.py`. `flows_of` makes them from a file for
`connect-mirror-maker.sh`, where a setting may be top-level, of a cluster (`A.`) or of a flow
(`A->B.`), the more specific first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.config import ConfigError
from moldau.mirror.machine.keys import ALL

__all__ = ["FlowName", "FlowSettings", "clusters_of", "flows_of"]

CONNECTOR: Final = "MirrorSourceConnector"
_CLIENT_KINDS = ("consumer.", "producer.", "admin.")
_WORKER_KEYS = ("offset.storage.", "config.storage.", "status.storage.")
_EXACTLY_ONCE = "exactly.once.source.support"


def _is_connection_key(name: str) -> bool:
    """Keys that Java's MirrorMaker passes on from a cluster to its clients."""
    return name.startswith(("ssl.", "sasl.")) or name in ("bootstrap.servers", "security.protocol")


def _stripped(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    size = len(prefix)
    return {key[size:]: value for key, value in properties.items() if key.startswith(prefix)}


@dataclass(frozen=True, slots=True, order=True)
class FlowName:
    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """A flow's properties as given, and the checked values of `keys.py`."""

    name: FlowName
    properties: Mapping[str, str]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> FlowSettings:
        """From flat properties; raises ConfigError."""
        values = ALL.parse(properties)
        name = FlowName(values["source.cluster.alias"], values["target.cluster.alias"])
        for side in ("source", "target"):
            if not properties.get(f"{side}.cluster.bootstrap.servers"):
                raise ConfigError(
                    f"{name}: the addresses of the {side} cluster are not set. Add "
                    f"{side}.cluster.bootstrap.servers, or {getattr(name, side)}.bootstrap.servers "
                    "in a file for connect-mirror-maker.sh",
                    key=f"{side}.cluster.bootstrap.servers",
                )
        return cls(name, dict(properties), values)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def is_exactly_once(self) -> bool:
        return self.properties.get(_EXACTLY_ONCE, "disabled").strip().lower() == "enabled"

    @property
    def group_id(self) -> str:
        """The name under which the processes of a flow find each other, and the prefix of
        transactional ids, as a Connect worker of MirrorMaker 2 has it."""
        return self.properties.get("group.id") or f"{self.name.source}-mm2"

    @property
    def offsets_topic(self) -> str:
        """The positions in the source, in the target."""
        given = self.properties.get("offset.storage.topic")
        return given or f"mm2-offsets.{self.name.source}.internal"

    @property
    def map_topic(self) -> str:
        return f"mm2-offset-map.{self.name.source}.internal"

    @property
    def back_map_topic(self) -> str:
        """The map of the flow back, in the source."""
        return f"mm2-offset-map.{self.name.target}.internal"

    @property
    def tasks_topic(self) -> str:
        return f"mm2-tasks.{self.name.source}.internal"

    def interval_s(self, what: str) -> float | None:
        """How often something is done; None if it is not."""
        if not self.values[f"{what}.enabled"]:
            return None
        return float(self.values[f"{what}.interval.seconds"])

    def client(self, side: str, kind: str) -> dict[str, str]:
        """The settings of a client: `side` is source or target, `kind` consumer, producer or
        admin."""
        cluster = _stripped(self.properties, f"{side}.cluster.")
        made = {key: value for key, value in cluster.items() if _is_connection_key(key)}
        if kind == "consumer":
            made["auto.offset.reset"] = "earliest"
        own = _stripped(self.properties, f"{kind}.")
        # A key of the mirror that only looks like one of a client.
        own.pop("poll.timeout.ms", None)
        own.pop("timeout.ms", None)
        made.update(own)
        made.update(_stripped(self.properties, f"{side}.{kind}."))
        if kind == "producer":
            made.update(_stripped(self.properties, "producer.override."))
            made = {key: each for key, each in made.items() if not key.startswith("override.")}
        return made


def clusters_of(properties: Mapping[str, str]) -> list[str]:
    """The names in `clusters`; raises ConfigError."""
    names = [each.strip() for each in properties.get("clusters", "").split(",")]
    names = [each for each in names if each]
    if not names:
        raise ConfigError(
            'Missing required configuration "clusters". Add a line such as clusters=A,B',
            key="clusters",
        )
    if len(set(names)) < len(names):
        raise ConfigError(f"clusters={','.join(names)} names a cluster twice", key="clusters")
    return names


def flows_of(
    properties: Mapping[str, str], targets: Iterable[str] = ()
) -> dict[FlowName, FlowSettings]:
    """The flows of a file, also those that only send heartbeats; with `targets` only those that
    write to these clusters. Raises ConfigError."""
    clusters = clusters_of(properties)
    unknown = sorted(set(targets) - set(clusters))
    if unknown:
        raise ConfigError(f"--clusters: {', '.join(unknown)} is not in clusters")
    wanted = set(targets) or set(clusters)
    found = {}
    for name in _pairs(clusters):
        flat = _flat(properties, name)
        enabled = _is_true(flat.get("enabled", "false"))
        heartbeats = _is_true(flat.get("emit.heartbeats.enabled", "true"))
        if name.target in wanted and (enabled or heartbeats):
            found[name] = FlowSettings.of(flat)
    if not found:
        raise ConfigError(
            "No source->target replication flows. Add a line such as "
            f"{clusters[0]}->{clusters[-1]}.enabled=true"
        )
    return found


def _pairs(clusters: list[str]) -> list[FlowName]:
    return [FlowName(one, other) for one in clusters for other in clusters if one != other]


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def _cluster_properties(properties: Mapping[str, str], cluster: str) -> dict[str, str]:
    """`cluster.*` without the prefix, with connection keys repeated for each kind of client and
    top-level ones as defaults."""
    made = _stripped(properties, f"{cluster}.")
    common = {key: value for key, value in properties.items() if _is_connection_key(key)}
    for given in (dict(made), common):
        for key, value in given.items():
            if _is_connection_key(key):
                for kind in ("", *_CLIENT_KINDS):
                    made.setdefault(kind + key, value)
    return made


def _flat(properties: Mapping[str, str], name: FlowName) -> dict[str, str]:
    flow = _stripped(properties, f"{name}.")
    flat = {
        key: value
        for key, value in properties.items()
        if key in ALL
        or key.startswith(("replication.policy.", "config.providers", *_WORKER_KEYS))
        or key == _EXACTLY_ONCE
    }
    for side, cluster in (("source", name.source), ("target", name.target)):
        for key, value in _cluster_properties(properties, cluster).items():
            between = "." if key.startswith(_CLIENT_KINDS) else ".cluster."
            flat[side + between + key] = value
    target = _stripped(properties, f"{name.target}.")
    for key in (_EXACTLY_ONCE, "group.id", "offset.storage.topic"):
        if key in target:
            # Java's worker is configured by its target cluster.
            flat[key] = target[key]
    flat.setdefault("name", CONNECTOR)
    flat["source.cluster.alias"] = name.source
    flat["target.cluster.alias"] = name.target
    flat.update(flow)
    flat.setdefault("enabled", "false")
    return flat
