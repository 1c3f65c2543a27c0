"""Instances of Streams applications: where they answer, and what their nodes process.

An instance names its address (`application.server`) when it joins its group. Only `/topology` is
asked for there, with a limit of time and bytes, and only names of nodes, numbers and the text of
the topology are taken from the answer: an address may be anything that a member of a group wrote.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.client.admin import MemberDescription
from moldau.client.consumer.assignors.embedded import read_subscription
from moldau.services.console.machine.topology_text import parse_topology
from moldau.streams.machine.placement import MemberState
from moldau.wire.errors import WireError

__all__ = ["Reported", "ask_instances", "endpoint_of", "reported_topology"]

_SECONDS_MAX: Final = 2.0
_BYTES_MAX: Final = 4 * 1024 * 1024
_ASKED_MAX: Final = 32


@dataclass(slots=True)
class Reported:
    """What the instances of an application say together."""

    topology: str = ""
    nodes: dict[str, dict[str, float]] = field(default_factory=dict)
    answered: int = 0

    def add(self, found: Any) -> None:
        """Raises ValueError, KeyError or TypeError for something else than a topology."""
        text = found["topology"]
        if not isinstance(text, str):
            raise TypeError("the topology is not a text")
        nodes = {
            str(name): (float(each["rate"]), float(each["records"]))
            for name, each in found["nodes"].items()
        }
        self.topology = text
        self.answered += 1
        for name, (rate, records) in nodes.items():
            sums = self.nodes.setdefault(name, {"rate": 0.0, "records": 0.0})
            sums["rate"] += rate
            sums["records"] += records


def reported_topology(found: Reported) -> dict[str, Any]:
    """As a picture, with the time at which the numbers were read."""
    return {**parse_topology(found.topology, found.nodes), "at_ms": time.time_ns() // 1_000_000}


async def ask_instances(addresses: Sequence[str]) -> Reported:
    """Those that do not answer are left out."""
    chosen = list(dict.fromkeys(addresses))[:_ASKED_MAX]
    answers = await asyncio.gather(*(asyncio.to_thread(_ask, each) for each in chosen))
    found = Reported()
    for answer in answers:
        try:
            found.add(answer)
        except (TypeError, ValueError, KeyError, AttributeError):
            # Another kind of server has this address.
            continue
    return found


def _ask(address: str) -> Any:
    host, _, port = address.rpartition(":")
    try:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_SECONDS_MAX)
    except ValueError:
        return None
    try:
        connection.request("GET", "/topology", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            return None
        return json.loads(answer.read(_BYTES_MAX))
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def endpoint_of(member: MemberDescription) -> str:
    """What a member of an application's consumer group says; empty if it says nothing."""
    try:
        return MemberState.decode(read_subscription(member.metadata).user_data, (), "").endpoint
    except (WireError, ValueError, TypeError, AttributeError):
        return ""
