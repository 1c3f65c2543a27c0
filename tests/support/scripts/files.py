"""Reads, runs and writes script files.

A script is a list of steps. A step is any comment lines, one command line, a line of four dashes
and the trace that the command produced, up to a blank line. Comments survive a rewrite.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

DIVIDER = "----"


class ScriptError(ValueError):
    """A script that cannot be read or run; the message names the line."""


@dataclass(frozen=True)
class Command:
    """`name` and its arguments: bare words, and `key=value` pairs."""

    name: str
    words: tuple[str, ...]
    options: Mapping[str, str]

    def node(self, index: int = 0) -> int:
        return int(self.words[index])

    def number(self, key: str, default: int) -> int:
        return int(self.options.get(key, default))

    def numbers(self, key: str, default: str = "") -> tuple[int, ...]:
        return tuple(int(each) for each in self.options.get(key, default).split(",") if each)


@dataclass(frozen=True)
class Step:
    comments: tuple[str, ...]
    text: str
    line: int
    trace: tuple[str, ...]

    @property
    def command(self) -> Command:
        name, *arguments = shlex.split(self.text)
        words = tuple(each for each in arguments if "=" not in each)
        options = dict(each.split("=", 1) for each in arguments if "=" in each)
        return Command(name, words, options)


class Stage(Protocol):
    """What a script plays on: one method `on_<name>` per command, which returns trace lines."""


def parse(text: str) -> list[Step]:
    steps: list[Step] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        comments: list[str] = []
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith("#")):
            if lines[at].startswith("#"):
                comments.append(lines[at])
            elif comments:
                comments.append("")
            at += 1
        if at == len(lines):
            break
        command, line = lines[at], at + 1
        at += 1
        if at < len(lines) and lines[at] == DIVIDER:
            at += 1
        elif at < len(lines) and lines[at].strip():
            raise ScriptError(f"line {at + 1}: expected {DIVIDER} after the command {command!r}")
        start = at
        while at < len(lines) and lines[at].strip():
            at += 1
        steps.append(Step(tuple(comments), command, line, tuple(lines[start:at])))
    return steps


def run(stage: Stage, steps: list[Step]) -> list[Step]:
    """The same steps with the traces that they produce now."""
    done = []
    for step in steps:
        command = step.command
        method: Callable[[Command], list[str]] | None = getattr(
            stage, f"on_{command.name.replace('-', '_')}", None
        )
        if method is None:
            known = sorted(
                name[3:].replace("_", "-") for name in dir(stage) if name.startswith("on_")
            )
            raise ScriptError(
                f"line {step.line}: unknown command {command.name!r}; one of {', '.join(known)}"
            )
        try:
            trace = method(command)
        except (KeyError, IndexError, ValueError) as error:
            raise ScriptError(f"line {step.line}: {step.text!r}: {error!r}") from error
        done.append(Step(step.comments, step.text, step.line, tuple(trace) or ("ok",)))
    return done


def render(steps: list[Step]) -> str:
    blocks = []
    for step in steps:
        comments = "".join(f"{line}\n" for line in step.comments)
        trace = "".join(f"{line}\n" for line in step.trace)
        blocks.append(f"{comments}{step.text}\n{DIVIDER}\n{trace}")
    return "\n".join(blocks)
