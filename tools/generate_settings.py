"""Writes the typed keyword arguments of the clients from the tables of their keys.

    python tools/generate_settings.py            write them if they changed
    python tools/generate_settings.py --check    write nothing, fail if they would change

The result, `src/moldau/client/config/keywords.py`, is what editors complete and type checkers check
in `Producer(linger_ms=5)`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from moldau.client.config import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from moldau.client.config.serializer_keys import DESERIALIZER_KEYS, SERIALIZER_KEYS
from moldau.client.share.settings import REFUSED
from moldau.config.definition import ConfigDef, ConfigKey
from moldau.config.validators import OneOf
from moldau.config.values import ConfigType

TARGET = Path(__file__).resolve().parent.parent / "src/moldau/client/config/keywords.py"

HEADER = '''\
"""The keyword arguments of the clients. Made by tools/generate_settings.py; edit the key tables.

Each is one of Kafka's keys with underscores for dots. Where Kafka has a list of words they are
listed here; numbers may be given as text too, as they come from a file or the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

__all__ = [
    "AdminKeywords",
    "ConsumerKeywords",
    "ProducerKeywords",
    "ShareConsumerKeywords",
]
'''

_TYPES = {
    ConfigType.BOOLEAN: "bool | str",
    ConfigType.INT: "int | str",
    ConfigType.SHORT: "int | str",
    ConfigType.LONG: "int | str",
    ConfigType.DOUBLE: "float | str",
    ConfigType.STRING: "str",
    ConfigType.PASSWORD: "str",
    ConfigType.LIST: "str | Sequence[Any]",
    ConfigType.CLASS: "Any",
}


def main() -> int:
    made = keywords()
    if TARGET.exists() and TARGET.read_text() == made:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{TARGET} is not what tools/generate_settings.py makes: run it")
        return 1
    TARGET.write_text(made)
    return 0


def keywords() -> str:
    """The text of the module."""
    shared = [
        name
        for name, key in PRODUCER_KEYS.items()
        if all(_same(key, other.get(name)) for other in (CONSUMER_KEYS, ADMIN_KEYS))
    ]
    of_share = {name: key for name, key in CONSUMER_KEYS.items() if name not in REFUSED}
    return "".join(
        (
            HEADER,
            _class("CommonKeywords", "TypedDict, total=False", _only(PRODUCER_KEYS, shared)),
            _class(
                "ProducerKeywords", "CommonKeywords", _but(PRODUCER_KEYS, shared), SERIALIZER_KEYS
            ),
            _class(
                "ShareConsumerKeywords", "CommonKeywords", _but(of_share, shared), DESERIALIZER_KEYS
            ),
            _class(
                "ConsumerKeywords",
                "ShareConsumerKeywords",
                _only(CONSUMER_KEYS, [name for name in REFUSED if name in CONSUMER_KEYS]),
            ),
            _class("AdminKeywords", "CommonKeywords", _but(ADMIN_KEYS, shared)),
        )
    )


def _same(key: ConfigKey, other: ConfigKey | None) -> bool:
    return other is not None and _type(key) == _type(other)


def _only(keys: Mapping[str, ConfigKey] | ConfigDef, names: Iterable[str]) -> list[ConfigKey]:
    wanted = set(names)
    return [key for name, key in keys.items() if name in wanted]


def _but(keys: Mapping[str, ConfigKey] | ConfigDef, names: Iterable[str]) -> list[ConfigKey]:
    left_out = set(names)
    return [key for name, key in keys.items() if name not in left_out]


def _class(name: str, bases: str, keys: Iterable[ConfigKey], more: Iterable[str] = ()) -> str:
    if "total" not in bases:
        bases += ", total=False"
    lines = {key.field: _type(key) for key in keys if not key.internal}
    lines |= {each.replace(".", "_"): "Any" for each in more}
    body = "\n".join(_line(field, lines[field]) for field in sorted(lines))
    return f"\n\nclass {name}({bases}):\n{body}\n"


def _line(field: str, kind: str) -> str:
    line = f"    {field}: {kind}"
    if len(line) <= 100 or not kind.startswith("Literal["):
        return line
    words, _, rest = kind.removeprefix("Literal[").partition("]")
    listed = "".join(f"        {word},\n" for word in words.split(", "))
    return f"    {field}: Literal[\n{listed}    ]{rest}"


def _type(key: ConfigKey) -> str:
    kind = _TYPES[key.type]
    if isinstance(key.validator, OneOf) and key.type is ConfigType.STRING:
        words = list(dict.fromkeys(_spellings(key.validator)))
        kind = f"Literal[{', '.join(words)}]"
    if key.default is None and kind != "Any":
        kind += " | None"
    return kind


def _spellings(rule: OneOf) -> Iterable[str]:
    for word in rule.words:
        spelt = (word.upper(), word.lower()) if rule.ignore_case else (word,)
        for each in spelt:
            yield f'"{each}"'
            if each.lstrip("-").isdigit():
                yield each


if __name__ == "__main__":
    sys.exit(main())
