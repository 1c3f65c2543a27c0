"""How a tool reaches the cluster: it fails early, and names the address, if no node answers."""

from __future__ import annotations

import argparse
import ssl
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.cli.support.client_options import client_config
from moldau.cli.support.failures import ToolError

if TYPE_CHECKING:
    from moldau.client.admin import Admin

__all__ = ["Unreachable", "open_admin", "wait_until_reachable"]

# How long a tool waits for a first broker to listen: enough for one that is just starting.
REACHABLE_SECONDS_MAX = 5.0
# How long it waits for the response of a node that accepts connections, which may be busy: as long
# as request.timeout.ms.
ANSWER_SECONDS_MAX = 30.0
_RETRY_SECONDS = 0.2


class Unreachable(ToolError):
    """No node answers at the cluster's addresses."""

    is_about_address = True


def open_admin(arguments: argparse.Namespace, **settings: Any) -> Admin:
    """An admin client for the cluster of the options; ToolError if no node can be reached."""
    from moldau.client.admin import Admin

    config = client_config(arguments)
    wait_until_reachable(config)
    return Admin(config, **settings)


def wait_until_reachable(
    config: Mapping[str, Any],
    *,
    seconds_max: float | None = None,
    idle_ms_max: int | None = None,
) -> None:
    """Returns once a Kafka node answers at one of the bootstrap addresses; ToolError if none does.

    A client would retry for a minute and end with a timeout that explains little. A node may be
    slow to answer, but an answer that is not Kafka's is reported at once. `idle_ms_max` is how long
    the user lets the tool wait for records.
    """
    from moldau.cli.support.probe import problems_of
    from moldau.client.config.settings import parse_addresses

    key = "bootstrap.controllers" if config.get("bootstrap.controllers") else "bootstrap.servers"
    entries = [entry.strip() for entry in str(config.get(key, "")).split(",") if entry.strip()]
    addresses = parse_addresses(key, entries)
    tls = _tls(config)
    limit = REACHABLE_SECONDS_MAX if seconds_max is None else seconds_max
    deadline = time.monotonic() + limit
    waiting = False
    while True:
        problems = problems_of(
            addresses,
            connect_seconds_max=REACHABLE_SECONDS_MAX,
            answer_seconds_max=_answer_seconds_max(config, idle_ms_max),
            tls=tls,
        )
        if problems is None:
            return
        certain = all(problem.certain for problem in problems)
        if certain or time.monotonic() >= deadline:
            break
        if not waiting and sys.stderr.isatty():
            print(f"No answer from {', '.join(entries)} yet, waiting ...", file=sys.stderr)
        waiting = True
        time.sleep(_RETRY_SECONDS)
    listed = "; ".join(
        f"{entry}: {problem.text}" for entry, problem in zip(entries, problems, strict=True)
    )
    kind = "controller" if key == "bootstrap.controllers" else "broker"
    fix = (
        ("Check the ssl.* settings." if tls else f"Give the address of a {kind}.")
        if certain
        else "Check that it is running and that the address is right."
    )
    raise Unreachable(f"no {kind} can be reached at {listed}. {fix}")


def _tls(config: Mapping[str, Any]) -> ssl.SSLContext | None:
    """What the node is asked with, if it is to be encrypted."""
    if not str(config.get("security.protocol", "")).upper().endswith("SSL"):
        return None
    from moldau.client.config import ADMIN_KEYS
    from moldau.security.tls import client_context

    keys = {name: key for name, key in ADMIN_KEYS.items() if name.startswith("ssl.")}
    return client_context(
        {
            name: key.parse(str(config[name])) if name in config else key.default
            for name, key in keys.items()
        }
    )


def _answer_seconds_max(config: Mapping[str, Any], idle_ms_max: int | None) -> float:
    given = str(config.get("default.api.timeout.ms", ""))
    if given.isdecimal() and int(given):
        # The user's timeout for every operation also applies to this one.
        return int(given) / 1000
    if idle_ms_max is not None and idle_ms_max >= 0:
        # A busy node needs at least this long; that no record came is not an error.
        return min(ANSWER_SECONDS_MAX, max(REACHABLE_SECONDS_MAX, idle_ms_max / 1000))
    return ANSWER_SECONDS_MAX
