"""Processors that wrap others."""

from __future__ import annotations

from collections.abc import Callable

from moldau.streams.machine.context import Processor

#: Gets the name of a node and what makes its processor; returns what makes the one to use.
ProcessorWrapper = Callable[[str, Callable[[], Processor]], Callable[[], Processor]]


def no_wrapper(name: str, supplier: Callable[[], Processor]) -> Callable[[], Processor]:
    """The default: processors run as they are."""
    return supplier
