"""What an exercise consists of, and how its texts become those of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.learning.machine.checks import Check

__all__ = ["DEFAULT_PLACES", "Exercise", "placed"]

#: Where the services of a course are unless these places are taken.
DEFAULT_PLACES: Mapping[str, str] = {
    "bootstrap": "127.0.0.1:9092",
    "data": "moldau-data",
    "registry": "http://127.0.0.1:8081",
    "rest": "http://127.0.0.1:8082",
    "connect": "http://127.0.0.1:8083",
    "sql": "http://127.0.0.1:8088",
    "cluster": "127.0.0.1:19092",
    "cluster_data": "moldau-cluster",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    name: str
    title: str
    minutes: int
    #: Services beside the broker: registry, rest, connect, sql, spark; or cluster alone.
    needs: tuple[str, ...] = ()
    #: What there is to know; Markdown.
    text: str
    #: What to do.
    task: str
    hint: str
    #: Commands of a shell.
    solution: str
    checks: tuple[Check, ...]
    #: Topics that a reset deletes.
    topics: tuple[str, ...] = ()
    #: Why its solution takes long.
    long: str | None = None

    @property
    def services(self) -> tuple[str, ...]:
        return self.needs if "cluster" in self.needs else ("broker", *self.needs)


def placed(text: str, places: Mapping[str, str]) -> str:
    """A text with the addresses of this machine: `{registry}` stands for the registry's."""
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return text
