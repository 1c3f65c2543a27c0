"""ksqlDB's query cases: read from the shared vectors, expanded by format and setting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moldau.sql.testing.values import Number
from support.shared_vectors import FOLDER as VECTORS

FOLDER = VECTORS / "ksql" / "query-validation-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`id` is FILE/INDEX/NAME, with the format or setting it was expanded for."""

    id: str
    statements: tuple[str, ...]
    properties: dict[str, Any]
    topics: tuple[dict[str, Any], ...]
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    post: dict[str, Any]
    error: dict[str, str] | None

    @property
    def script(self) -> str:
        return "\n".join(self.statements)


def load(path: Path) -> Any:
    """A file of cases; numbers keep their text."""
    return json.loads(path.read_text(), parse_float=Number, parse_int=Number)


def cases(folder: Path = FOLDER) -> Iterator[Case]:
    """All cases that are enabled, in order."""
    for path in sorted(folder.glob("*.json")):
        for index, raw in enumerate(load(path)["tests"]):
            if raw.get("enabled", True) is not False:
                yield from _expanded(f"{path.stem}/{index}/{raw['name']}", raw)


def _expanded(name: str, raw: dict[str, Any]) -> Iterator[Case]:
    settings = {key: _plain(value) for key, value in raw.get("properties", {}).items()}
    for chosen in raw.get("format") or [None]:
        for config in raw.get("config") or [None]:
            case = Case(
                id=name,
                statements=tuple(raw["statements"]),
                properties=settings,
                topics=tuple(raw.get("topics", ())),
                inputs=tuple(raw.get("inputs", ())),
                outputs=tuple(raw.get("outputs", ())),
                post=raw.get("post", {}),
                error=raw.get("expectedException"),
            )
            if chosen is not None:
                statements = tuple(each.replace("{FORMAT}", chosen) for each in case.statements)
                case = replace(case, id=f"{case.id} - {chosen}", statements=statements)
            if config is not None:
                with_config = {
                    key: _plain(config) if value == "{CONFIG}" else value
                    for key, value in settings.items()
                }
                case = replace(case, id=f"{case.id} - {config}", properties=with_config)
            yield case


def _plain(value: Any) -> Any:
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdigit() else float(value)
    return value
