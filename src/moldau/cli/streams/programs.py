"""Finds the topology in a program's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.support.failures import ToolError

if TYPE_CHECKING:
    from moldau.streams import Topology

__all__ = ["load_topology"]


def load_topology(file: str) -> Topology:
    """The topology of a program; raises ToolError that says what is missing."""
    from moldau.streams.errors import StreamsError
    from moldau.streams.hosts import programs

    try:
        return programs.load_topology(file)
    except StreamsError as error:
        raise ToolError(str(error)) from error
