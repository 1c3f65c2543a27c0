"""Reads Gherkin: as much of it as the feature files of the vectors use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Scenario", "Step", "read_feature"]

_WORDS = ("Given ", "When ", "Then ", "And ", "But ")


@dataclass(frozen=True)
class Step:
    text: str
    document: str | None = None
    line: int = 0


@dataclass
class Scenario:
    file: str
    title: str
    tags: frozenset[str]
    line: int
    steps: list[Step] = field(default_factory=list)


def read_feature(path: Path) -> list[Scenario]:
    """The scenarios, each with the steps of the background in front."""
    background: list[Step] = []
    scenarios: list[Scenario] = []
    steps: list[Step] | None = None
    tags: list[str] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    position = 0
    while position < len(lines):
        number, line = position + 1, lines[position].strip()
        position += 1
        if line.startswith("@"):
            tags += line.split()
        elif line.startswith("Feature:"):
            tags = []
        elif line.startswith("Background:"):
            steps, tags = background, []
        elif line.startswith("Scenario:"):
            title = line.removeprefix("Scenario:").strip()
            scenario = Scenario(path.name, title, frozenset(tags), number, list(background))
            scenarios.append(scenario)
            steps, tags = scenario.steps, []
        elif steps is not None and line.startswith(_WORDS):
            text = line.split(" ", 1)[1].strip()
            document = None
            if position < len(lines) and lines[position].strip() == '"""':
                document, position = _document(lines, position)
            steps.append(Step(text, document, number))
    return scenarios


def _document(lines: list[str], start: int) -> tuple[str, int]:
    """The text between the marks, and the position after it."""
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while lines[end].strip() != '"""':
        end += 1
    inside = lines[start + 1 : end]
    found = [each[indent:] if not each[:indent].strip() else each for each in inside]
    return "\n".join(found), end + 1
