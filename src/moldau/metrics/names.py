"""How a metric is declared, and its MBean's name.

Kafka has two kinds of MBeans. Those of its older library have a name
(`kafka.server:type=ReplicaManager,name=LeaderCount`) and fixed attributes (Value, or Count and
OneMinuteRate, or percentiles). Those of its newer one have none (`kafka.server:type=raft-metrics`),
and every metric is an attribute. `Spec.attribute` is set for the latter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["Kind", "MBean", "Spec", "declared", "mbean_pattern", "parse_mbean"]

#: What JMX wants quoted in a tag's value.
_QUOTED: Final = re.compile(r'[,=:"*?\n]')
_PAIR: Final = re.compile(r'([^,=]+)=("(?:[^"\\]|\\.)*"|[^,]*)')


class Kind(Enum):
    """What a metric's value is."""

    GAUGE = "gauge"
    #: A gauge that only grows, so that rates can be taken from it.
    COUNTER = "counter"
    METER = "meter"
    HISTOGRAM = "histogram"
    TIMER = "timer"


class Spec(NamedTuple):
    """One metric, with one value per combination of its tags' values."""

    domain: str
    type: str
    name: str
    """Empty where the MBean has none; then `attribute` is set."""
    kind: Kind
    help: str
    tags: tuple[str, ...] = ()
    attribute: str = ""
    event_type: str = "events"
    """What a meter counts, in Kafka's word."""

    @property
    def key(self) -> str:
        """The MBean without tags, and the attribute where it is a metric of its own."""
        attribute = f"#{self.attribute}" if self.attribute else ""
        return f"{self.domain}:{','.join(self._identity)}{attribute}"

    @property
    def _identity(self) -> list[str]:
        pairs = (("type", self.type), ("name", self.name))
        return [f"{key}={value}" for key, value in pairs if value]

    def mbean(self, values: tuple[str, ...]) -> str:
        """The name of the MBean with these values of the tags, as Kafka writes it."""
        parts = self._identity
        parts += [f"{tag}={_quoted(value)}" for tag, value in zip(self.tags, values, strict=True)]
        return f"{self.domain}:{','.join(parts)}"


class MBean(NamedTuple):
    """A name that was read."""

    domain: str
    properties: Mapping[str, str]


def parse_mbean(text: str) -> MBean:
    """Read an MBean's name; ValueError if it is none."""
    domain, colon, rest = text.partition(":")
    pairs = dict(_PAIR.findall(rest))
    if not colon or not domain or not pairs:
        raise ValueError(
            f"{text!r} is not the name of an MBean: write domain:type=TYPE,name=NAME, such as "
            "kafka.server:type=ReplicaManager,name=LeaderCount"
        )
    return MBean(domain, {key: _unquoted(value) for key, value in pairs.items()})


def mbean_pattern(text: str) -> re.Pattern[str]:
    """What JMX's patterns mean: `*` and `?` anywhere, and a last `,*` for further properties."""
    parse_mbean(text if not text.endswith(",*") else text[:-2])
    escaped = re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")
    if text.endswith(",*"):
        escaped = escaped.removesuffix(",.*") + "(,.*)?"
    return re.compile(escaped)


def declared(
    kind: Kind, mbean: str, help: str, *tags: str, attribute: str = "", event_type: str = "events"
) -> Spec:
    """A metric of the MBean with this name, without its tags."""
    domain, properties = parse_mbean(mbean)
    return Spec(
        domain,
        properties.get("type", ""),
        properties.get("name", ""),
        kind,
        help,
        tags,
        attribute,
        event_type,
    )


def _quoted(value: str) -> str:
    if not _QUOTED.search(value):
        return value
    escaped = re.sub(r'([\\"*?])', r"\\\1", value).replace("\n", "\\n")
    return f'"{escaped}"'


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value[1:-1])
