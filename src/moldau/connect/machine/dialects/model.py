"""Dialect: what is called otherwise, has no effect or is not here, and how that is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: Settings of every connector that are no plug-in's.
SHARED_PREFIXES = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "transforms.",
    "predicates.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "topic.creation.",
    "config.providers",
)

Computed = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`renamed` names end with `*` where what follows is kept. Patterns of `no_effect`, `missing`
    and `refused` may contain `*`."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    computed: Mapping[str, Computed] = field(default_factory=dict)
    no_effect: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """With the original's default."""


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def because(reason: str, text: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), reason)


def refused(text: str, default: str = "") -> dict[str, str]:
    return dict.fromkeys(text.split(), default)


def seconds(key: str) -> Computed:
    return lambda text: {key: str(int(float(text) * 1000)) if _is_number(text) else text}


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def negated(key: str) -> Computed:
    return lambda text: {key: "false" if text.strip().lower() == "true" else "true"}


def when_true(key: str, value: str) -> Computed:
    return lambda text: {key: value} if text.strip().lower() == "true" else {}


LICENCE = because("there is no licence", "confluent.topic.* confluent.license")
CLIENT = "the Python client does that by itself"
STORES = because("PEM files have no password", "*.truststore.password *.trust.store.password")
