"""Metrics as Prometheus reads them, under the names that the usual JMX exporter rules make.

The rules are those of `kafka-2_0_0.yml` and `kafka-kraft-3_0_0.yml` of the Prometheus JMX exporter,
which public dashboards for Kafka expect: `kafka_<domain>_<type>_<name>` in lower case, `_total` for
the count of a meter per second, `_count` and a `quantile` label for a histogram, the MBean's tags
as labels. Beyond the rules: a histogram also has `_sum`, which the exporter cannot get.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from moldau.metrics._instruments import Histogram, Meter
from moldau.metrics.names import Kind, Spec
from moldau.metrics.registry import Sample, Timer

__all__ = ["CONTENT_TYPE", "Page", "PrometheusName", "lines", "name_of"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_QUANTILES: Final = (
    ("0.50", 0.5),
    ("0.75", 0.75),
    ("0.95", 0.95),
    ("0.98", 0.98),
    ("0.99", 0.99),
    ("0.999", 0.999),
)
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_:]+")
_PER_SECOND: Final = re.compile(r"PerSec\w*$")
_PERCENT: Final = re.compile(r"Percent\w*$")
#: Quotas: the rules put all kinds under one name, with the kind as a label.
_QUOTA_TYPES: Final = frozenset({"Produce", "Fetch", "Request", "ControllerMutation"})
#: The rules for KRaft write these types as one word, and the state of a voter as a label.
_ONE_WORD: Final = frozenset({"raft-metrics", "broker-metadata-metrics"})
_STATE: Final = "current-state"


class PrometheusName(NamedTuple):
    name: str
    type: str
    labels: tuple[str, ...]


@lru_cache(maxsize=10_000)
def name_of(spec: Spec) -> PrometheusName:
    """The name, type and labels of a metric (of its count, if it is a meter)."""
    labels = tuple(_safe(tag) for tag in spec.tags)
    domain = spec.domain.replace(".", "_")
    if spec.attribute:
        if spec.type in _QUOTA_TYPES and spec.tags:
            labels = tuple("clientId" if tag == "client-id" else tag for tag in spec.tags)
            name = f"{domain}_quota_{spec.attribute}"
            return PrometheusName(_safe(name).lower(), "gauge", (*labels, "resource"))
        kind = "counter" if spec.attribute.endswith("-total") else "gauge"
        type_ = spec.type.replace("-", "") if spec.type in _ONE_WORD else spec.type
        return PrometheusName(_safe(f"{domain}_{type_}_{spec.attribute}").lower(), kind, labels)
    base = "_".join(part for part in (domain, spec.type, spec.name) if part)
    match spec.kind:
        case Kind.METER | Kind.GAUGE if _PERCENT.search(spec.name) and len(labels) < 2:
            base, kind = f"{_PERCENT.sub('', base)}_percent", "gauge"
        case Kind.METER if _PER_SECOND.search(spec.name):
            base, kind = f"{_PER_SECOND.sub('', base)}_total", "counter"
        case Kind.METER:
            base, kind = f"{base}_count", "counter"
        case Kind.HISTOGRAM | Kind.TIMER:
            kind = "summary"
        case Kind.COUNTER:
            kind = "counter"
        case _:
            kind = "gauge"
    return PrometheusName(_safe(base).lower(), kind, labels)


class Page:
    """The text, metric by metric: Prometheus wants the lines of a name together."""

    def __init__(self) -> None:
        self._heads: dict[str, str] = {}
        self._families: dict[str, list[str]] = {}

    def add(self, sample: Sample) -> None:
        name, kind, labels = name_of(sample.spec)
        family = self._families.get(name)
        if family is None:
            text = sample.spec.help.replace("\\", "\\\\").replace("\n", " ")
            self._heads[name] = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
            family = self._families[name] = []
        family += _sample_lines(name, labels, sample)

    def pieces(self) -> Iterator[str]:
        """All of it, a piece for each name."""
        for name, family in self._families.items():
            if family:
                yield self._heads[name] + "".join(family)


def lines(samples: Iterable[Sample]) -> Iterator[str]:
    """The whole text, in pieces."""
    page = Page()
    for sample in samples:
        page.add(sample)
    return page.pieces()


def _sample_lines(name: str, labels: tuple[str, ...], sample: Sample) -> Iterator[str]:
    spec, values, reading = sample
    if len(labels) > len(values):
        values = (*values, spec.type)
    text = ",".join(
        f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True)
    )
    if isinstance(reading, Meter):
        value = reading.mean_rate if name.endswith("_percent") else reading.count
        yield _line(name, text, value)
    elif isinstance(reading, Histogram):
        yield from _summary(name, text, reading)
    elif isinstance(reading, Timer):
        yield from _summary(name, text, reading.histogram)
    elif not isinstance(reading, str):
        yield _line(name, text, reading)
    elif spec.attribute == _STATE:
        yield _line(name, f'{_safe(_STATE)}="{_escaped(reading)}"', 1)


def _summary(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    comma = "," if labels else ""
    for quantile, share in _QUANTILES:
        value = histogram.percentile(share)
        yield _line(name, f'{labels}{comma}quantile="{quantile}"', value)
    yield _line(f"{name}_sum", labels, histogram.sum)
    yield _line(f"{name}_count", labels, histogram.count)


def _line(name: str, labels: str, value: float) -> str:
    braces = f"{{{labels}}}" if labels else ""
    return f"{name}{braces} {number(value)}\n"


def number(value: float) -> str:
    """A number as Prometheus writes it."""
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", text)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
