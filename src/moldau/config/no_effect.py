"""Keys that are accepted for compatibility and have no effect, with the reasons.

The lists are in broker/config/no_effect.py and client/config/no_effect.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.config.definition import ConfigKey

__all__ = ["Reasons", "keys_without_effect", "reason_for"]

#: Names by reason. A name that ends with a dot stands for all keys that begin so.
Reasons = Mapping[str, tuple[str, ...]]


def reason_for(name: str, reasons: Reasons) -> str | None:
    """Why a key has no effect; None for one that is not listed."""
    for reason, names in reasons.items():
        for each in names:
            if name == each or (each.endswith(".") and name.startswith(each)):
                return reason
    return None


def keys_without_effect(
    given: Iterable[str],
    values: Mapping[str, Any],
    keys: Mapping[str, ConfigKey],
    reasons: Reasons,
) -> list[str]:
    """Those of the given names that change nothing although they differ from the default.

    `values` are the parsed ones of `keys`; names of neither differ.
    """

    def differs(name: str) -> bool:
        key = keys.get(name)
        return key is None or bool(values[name] != key.default)

    return sorted(name for name in given if reason_for(name, reasons) and differs(name))
