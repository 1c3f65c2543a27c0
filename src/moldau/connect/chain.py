"""A connector's transforms, in order, each with its predicate.

`transforms=mask,route`, `transforms.mask.type=...`, `transforms.mask.predicate=isOrder`,
`transforms.mask.negate=true`, `predicates=isOrder`, `predicates.isOrder.type=...`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from moldau.connect.api import ConfigError, ConnectRecord, Predicate, Transformation
from moldau.connect.built_in import PluginKind
from moldau.connect.functions import PREFIX as PYTHON_PREFIX
from moldau.connect.functions import FunctionTransform
from moldau.connect.plugins import PLUGIN_VERSION, Plugins, checked_class

R = TypeVar("R", bound=ConnectRecord)

__all__ = ["Chain", "Link", "aliases", "chain_of", "with_prefix"]


@dataclass(slots=True)
class Link:
    """One transform, and when it applies."""

    alias: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: R) -> R | None:
        if self.predicate is not None and self.predicate.test(record) is self.negate:
            return record
        return self.transformation.apply(record)


class Chain:
    """Transforms applied one after the other, until one drops the record."""

    def __init__(self, links: list[Link]) -> None:
        self.links = links

    def __bool__(self) -> bool:
        return bool(self.links)

    def apply(self, record: R) -> R | None:
        current: R | None = record
        for link in self.links:
            if current is None:
                return None
            current = link.apply(current)
        return current

    def close(self) -> None:
        for link in self.links:
            link.transformation.close()
            if link.predicate is not None:
                link.predicate.close()


def aliases(config: Mapping[str, str], key: str) -> list[str]:
    """The names in `transforms` or `predicates`; ConfigError if one is given twice."""
    names = alias_names(config, key)
    if len(set(names)) < len(names):
        raise ConfigError.invalid(key, f"[{', '.join(names)}]", "Duplicate alias provided.")
    return names


def alias_names(config: Mapping[str, str], key: str) -> list[str]:
    """As they are written."""
    return [each.strip() for each in config.get(key, "").split(",") if each.strip()]


def with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The settings that begin with `prefix`, without it."""
    return {
        key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)
    }


def chain_of(config: Mapping[str, str], plugins: Plugins) -> Chain:
    """The chain that a connector's configuration describes; ConfigError if it is wrong."""
    predicates = {
        alias: _predicate(config, alias, plugins) for alias in aliases(config, "predicates")
    }
    return Chain(
        [_link(config, alias, plugins, predicates) for alias in aliases(config, "transforms")]
    )


def _predicate(config: Mapping[str, str], alias: str, plugins: Plugins) -> Predicate:
    prefix = f"predicates.{alias}."
    made: Predicate = checked_class(
        plugins,
        f"{prefix}type",
        _type(config, prefix),
        PluginKind.PREDICATE,
        version=config.get(f"{prefix}{PLUGIN_VERSION}"),
    )()
    own = with_prefix(config, prefix)
    own.pop("type")
    own.pop(PLUGIN_VERSION, None)
    made.configure(own)
    return made


def _link(
    config: Mapping[str, str], alias: str, plugins: Plugins, predicates: Mapping[str, Predicate]
) -> Link:
    prefix = f"transforms.{alias}."
    name = _type(config, prefix)
    own = with_prefix(config, prefix)
    del own["type"]
    version = own.pop(PLUGIN_VERSION, None)
    predicate_alias = own.pop("predicate", None)
    negate = own.pop("negate", "false").strip().lower()
    if negate not in ("true", "false"):
        raise ConfigError.invalid(
            f"{prefix}negate", negate, "Expected value to be either true or false"
        )
    made: Transformation
    if name.startswith(PYTHON_PREFIX):
        made = FunctionTransform.named(f"{prefix}type", name)
    else:
        made = checked_class(
            plugins, f"{prefix}type", name, PluginKind.TRANSFORMATION, version=version
        )()
    made.configure(own)
    if predicate_alias is None:
        if negate == "true":
            raise ConfigError(
                f"{prefix}negate is set without {prefix}predicate", key=f"{prefix}negate"
            )
        return Link(alias, made)
    if predicate_alias not in predicates:
        raise ConfigError.invalid(
            f"{prefix}predicate",
            predicate_alias,
            "it is not in predicates: " + (", ".join(predicates) or "there are none"),
        )
    return Link(alias, made, predicates[predicate_alias], negate == "true")


def _type(config: Mapping[str, str], prefix: str) -> str:
    name = config.get(f"{prefix}type", "").strip()
    if not name:
        raise ConfigError(
            f'Missing required configuration "{prefix}type" which has no default value.',
            key=f"{prefix}type",
        )
    return name
