"""What a client takes from the machine that it runs on: time, chance, connections, a thread.

Clients are made deep inside applications, such as those of Streams. So whoever supplies another
machine, as the simulator does, sets it in the context of the code that makes them; nothing in
between has to pass it on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from random import Random
from typing import NamedTuple

from moldau.client.loop_thread import LoopThread
from moldau.clock import Clock, LoopClock
from moldau.peers.machine.backoff import RandomSource
from moldau.peers.node_channel import Connect

__all__ = ["ENVIRONMENT", "ClientEnvironment"]


class ClientEnvironment(NamedTuple):
    """See the module. The defaults are the real machine."""

    clock: Callable[[], Clock] = LoopClock
    random: Callable[[], RandomSource] = Random
    #: How connections are made; None stands for sockets, and names that are looked up first.
    connect: Connect | None = None
    #: The thread under a blocking client, by its name.
    thread: Callable[[str], LoopThread] = LoopThread
    #: Lets the calling thread wait.
    sleep: Callable[[float], None] = time.sleep


ENVIRONMENT: ContextVar[ClientEnvironment] = ContextVar(
    "client environment",
    default=ClientEnvironment(),  # noqa: B039 (frozen)
)
