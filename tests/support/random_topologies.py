"""Random programs of Streams that count what some steps leave, and what they mean."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Row = tuple[str, str]


@dataclass(frozen=True)
class Step:
    """A step of a stream as source, and what it means for a record."""

    source: str
    means: Callable[[Row], list[Row]]


STEPS = [
    Step(
        "stream.filter(lambda key, value: len(value) > 1)",
        lambda row: [row] if len(row[1]) > 1 else [],
    ),
    Step(
        'stream.filter_not(lambda key, value: value.startswith("x"))',
        lambda row: [] if row[1].startswith("x") else [row],
    ),
    Step(
        "stream.map_values(lambda value: value[::-1])",
        lambda row: [(row[0], row[1][::-1])],
    ),
    Step(
        "stream.flat_map_values(list)",
        lambda row: [(row[0], each) for each in row[1]],
    ),
    Step(
        "stream.select_key(lambda key, value: value[0])",
        lambda row: [(row[1][0], row[1])],
    ),
    Step(
        "stream.map(lambda key, value: (key + value[0], value + key))",
        lambda row: [(row[0] + row[1][0], row[1] + row[0])],
    ),
    Step(
        'stream.merge(stream.map_values(lambda value: value + "m"))',
        lambda row: [row, (row[0], f"{row[1]}m")],
    ),
    Step(
        'stream.repartition(key_serde="string", value_serde="string")',
        lambda row: [row],
    ),
]
HEAD = """\
from moldau.streams import StreamsBuilder

builder = StreamsBuilder()
stream = builder.stream("{name}-in", key_serde="string", value_serde="string")
"""
TAIL = """\
grouped = stream.group_by_key(key_serde="string", value_serde="string")
counts = grouped.count(store="counts").to_stream()
counts.to("{name}-out", key_serde="string", value_serde="long")
"""


class RandomProgram:
    """Of a seed: up to four steps, then a count by key."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self._steps = chance.choices(STEPS, k=chance.randint(0, 4))
        lines = [HEAD.format(name=name)]
        lines += [f"stream = {step.source}\n" for step in self._steps]
        self.source = "".join([*lines, TAIL.format(name=name)])

    def expected(self, rows: Iterable[Row]) -> dict[str, int]:
        """The counts, from the meaning of the steps."""
        found = list(rows)
        for step in self._steps:
            found = [made for row in found for made in step.means(row)]
        return dict(Counter(key for key, _ in found))


def random_rows(chance: random.Random, count: int) -> list[Row]:
    return [
        (chance.choice("abcdefgh"), "".join(chance.choices("abxy", k=chance.randint(1, 4))))
        for _ in range(count)
    ]
