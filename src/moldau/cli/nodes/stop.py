"""`moldau server-stop`: ask running brokers of this machine to stop, as Kafka's script does.

Brokers are found by their command lines. With --node-id or --process-role only those whose
configuration file says so are asked; paths in command lines are relative to the current directory.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties

__all__ = ["Broker", "matching_brokers", "run_server_stop"]

_COMMAND = re.compile(
    r"\s*(?P<pid>[0-9]+)\s+\S*python\S*\s+(?:-\S+\s+)*"
    r"(?:\S*/moldau|moldau\.cli(?:\.main)?|\S*/moldau/cli/\S+)\s+(?:server-start|start)\b(?P<rest>.*)"
)


class Broker(NamedTuple):
    pid: int
    file: str | None
    overrides: tuple[str, ...]


def run_server_stop(arguments: argparse.Namespace) -> int:
    name = os.environ.get("SIGNAL", "TERM").removeprefix("SIG")
    try:
        number = signal.Signals[f"SIG{name}"]
    except KeyError:
        print(f"moldau: SIGNAL={name} is not the name of a signal", file=sys.stderr)
        return 1
    listing = subprocess.run(
        ["ps", "-axwwo", "pid=,args="], capture_output=True, text=True, check=False
    )
    brokers = list(matching_brokers(listing.stdout))
    if not brokers:
        print("No kafka server to stop")
        return 1
    for broker in brokers:
        if _is_meant(broker, arguments.process_role, arguments.node_id):
            os.kill(broker.pid, number)
    return 0


def matching_brokers(listing: str) -> Iterator[Broker]:
    """Brokers in the output of ps, with what they were started with."""
    for line in listing.splitlines():
        match = _COMMAND.match(line)
        if match is None or int(match["pid"]) == os.getpid():
            continue
        yield _broker(int(match["pid"]), match["rest"].split())


def _broker(pid: int, words: list[str]) -> Broker:
    file: str | None = None
    overrides: list[str] = []
    position = 0
    while position < len(words):
        option, separator, value = words[position].partition("=")
        if option in ("--override", "--port", "--data"):
            if not separator:
                position += 1
                value = words[position] if position < len(words) else ""
            if option == "--override":
                overrides.append(value)
        elif not words[position].startswith("-"):
            file = file or words[position]
        position += 1
    return Broker(pid, file, tuple(overrides))


def _is_meant(broker: Broker, role: str | None, node_id: int | None) -> bool:
    if role is None and node_id is None:
        return True
    properties: dict[str, str] = {"process.roles": "broker,controller", "node.id": "1"}
    if broker.file is not None:
        try:
            with open(broker.file, encoding="utf-8", errors="replace") as file:
                properties = load_properties(file.read())
        except (OSError, ConfigError):
            print(f"moldau: cannot read {broker.file} of process {broker.pid}", file=sys.stderr)
            return False
    for override in broker.overrides:
        key, _, value = override.partition("=")
        properties[key] = value
    if node_id is not None:
        own = properties.get("node.id", properties.get("broker.id"))
        return own is not None and own.strip() == str(node_id)
    # Kafka compares the whole value: a combined node is neither "broker" nor "controller".
    return properties.get("process.roles", "").strip() == role
