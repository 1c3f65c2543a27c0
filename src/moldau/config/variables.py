"""Variables in settings: `${provider:path:key}` or `${provider:key}` (KIP-297), pure.

A variable of a provider that is not configured, or that the provider has no value for, stays as it
is, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


class Variable(NamedTuple):
    provider: str
    path: str
    key: str


def variables_in(text: str) -> list[Variable]:
    return [_variable(match) for match in _VARIABLE.finditer(text)]


def replace_variables(text: str, find: Callable[[Variable], str | None]) -> str:
    """`text` with every variable replaced that `find` has a value for."""

    def value(match: re.Match[str]) -> str:
        found = find(_variable(match))
        return match.group() if found is None else found

    return _VARIABLE.sub(value, text)


def _variable(match: re.Match[str]) -> Variable:
    provider, path, key = match.groups()
    return Variable(provider.strip(), (path or "").strip(), key.strip())


class ProviderSpec(NamedTuple):
    """A provider as configured."""

    name: str
    class_name: str | None
    params: dict[str, Any]


PROVIDERS_KEY: Final = "config.providers"


def provider_specs(settings: Mapping[str, Any]) -> list[ProviderSpec]:
    """What `config.providers` and `config.providers.NAME.*` say."""
    given = settings.get(PROVIDERS_KEY) or ()
    names = given.split(",") if isinstance(given, str) else given
    specs = []
    for name in (str(each).strip() for each in names):
        if not name:
            continue
        prefix = f"{PROVIDERS_KEY}.{name}.param."
        params = {
            key.removeprefix(prefix): value
            for key, value in settings.items()
            if key.startswith(prefix)
        }
        class_name = settings.get(f"{PROVIDERS_KEY}.{name}.class")
        specs.append(ProviderSpec(name, class_name, params))
    return specs


def is_provider_key(name: str) -> bool:
    return name == PROVIDERS_KEY or name.startswith(PROVIDERS_KEY + ".")
