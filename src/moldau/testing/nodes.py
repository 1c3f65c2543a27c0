"""One node of a cluster under test: its process and its faults.

A node is a process of its own. `kill` is SIGKILL, `pause` is SIGSTOP. Faults of the network, the
disk and the clock are carried out inside the node.
"""

from __future__ import annotations

import itertools
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, TypedDict, Unpack

from moldau.testing import wire_format
from moldau.testing.errors import BrokerError, BrokerNotRunning, BrokerStartError
from moldau.testing.machine.rules import Rule
from moldau.testing.settings import HOST, node_properties
from moldau.testing.template import Template

__all__ = ["Fault", "Home", "Node"]

_START_S_MAX: Final = 60.0
_STOP_S_MAX: Final = 30.0
_LOG_TAIL: Final = 4_000

Senders = Literal["clients", "nodes", "all"]
Lost = Literal["request", "response"]


class FaultOptions(TypedDict, total=False):
    """Which requests a fault is for, and how often it hits."""

    #: From 0 to 1, drawn from the seed.
    probability: float
    #: So many are hit at most; no limit if None.
    times: int | None
    #: So many are spared first.
    after: int
    #: A pattern as in file names.
    client_id: str
    #: Who is meant: clients, the other nodes, or both.
    senders: Senders


class Home(Protocol):
    """The cluster of a node, as far as the node uses it."""

    seed: int
    config: Mapping[str, str]
    log_dirs: int
    log_level: str
    cluster_id: str
    folder: str
    template: Template | None

    @property
    def security(self) -> str: ...

    @property
    def nodes(self) -> Mapping[int, Node]: ...

    def reserve_ports(self) -> tuple[int, int]: ...

    def take_template(self) -> None: ...


class Fault:
    """A fault that has been set; `remove` it, or use it as a context manager."""

    def __init__(self, node: Node, rule: Rule) -> None:
        self._node = node
        self._rule = rule

    @property
    def hits(self) -> int:
        """How many requests it has hit so far."""
        return int(self._node.order("rule.hits", self._rule.rule_id))

    def remove(self) -> None:
        """End the fault; connections that wait because of it are closed."""
        self._node.remove_rule(self._rule)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<{self._rule.kind} on node {self._node.id}>"


class Node:
    """See the module; made by a Cluster."""

    def __init__(self, cluster: Home, node_id: int) -> None:
        self._cluster = cluster
        self.id = node_id
        self._ports = cluster.reserve_ports()
        self._control: socket.socket | None = None
        self._lock = threading.RLock()
        self._starts = 0
        self._rules: dict[int, Rule] = {}
        self._numbers = itertools.count(1)
        self._room: dict[int, int] = {}
        self._clock_ahead_ms = 0
        self._wall_ahead_ms = 0
        self._paused = False
        self._ready = False
        self.cuts: list[dict[str, Any]] = []
        self.pid: int | None = None
        #: Where its metrics are, if the cluster's config has `moldau.metrics.port=0`.
        self.metrics_port: int | None = None

    @property
    def port(self) -> int:
        return self._ports[0]

    @property
    def controller_port(self) -> int:
        return self._ports[1]

    @property
    def address(self) -> str:
        """host:port for clients; the same as long as the cluster exists."""
        return f"{HOST}:{self.port}"

    @property
    def folder(self) -> Path:
        """Where its data is."""
        return Path(self._cluster.folder) / f"node-{self.id}"

    @property
    def log_dirs(self) -> list[Path]:
        return [Path(each) for each in self.properties["log.dirs"].split(",")]

    @property
    def log_file(self) -> Path:
        return Path(self._cluster.folder) / f"node-{self.id}.log"

    @property
    def logs(self) -> str:
        """Everything the node has logged."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def properties(self) -> Mapping[str, str]:
        """The node's server.properties."""
        return node_properties(
            node_id=self.id,
            ports={each.id: each._ports for each in self._cluster.nodes.values()},
            folder=str(self.folder),
            log_dirs=self._cluster.log_dirs,
            overrides=self._cluster.config,
            security=self._cluster.security,
        )

    @property
    def running(self) -> bool:
        """Whether its process exists; a paused one does."""
        with self._lock:
            if self.pid is None:
                return False
            if self._template.usable and self._template.poll(self.pid) is None:
                return True
            self._let_go()
            return False

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def disturbed(self) -> bool:
        """Whether a test has left something for `Cluster.heal` to undo."""
        return bool(self._rules or self._room or self.cuts or self._paused or not self.running)

    def __repr__(self) -> str:
        state = "not running" if self.pid is None else f"pid {self.pid}"
        return f"<node {self.id} at {self.address}, {state}>"

    @property
    def _template(self) -> Template:
        template = self._cluster.template
        if template is None:
            raise BrokerNotRunning("the cluster has not been started")
        return template

    # Life.

    def spawn(self) -> None:
        """Start the process; `wait_until_ready` waits until it serves."""
        with self._lock:
            if self.running:
                raise BrokerError(f"node {self.id} is already running")
            self._cluster.take_template()
            own, theirs = socket.socketpair()
            with theirs:
                self.pid = self._template.spawn(self._spec(), theirs)
            self._control = own
            self._ready = False
            self._starts += 1

    def wait_until_ready(self) -> None:
        """Until it serves clients; BrokerStartError if it does not."""
        with self._lock:
            control = self._socket()
            if self._ready:
                return
            control.settimeout(_START_S_MAX)
            try:
                message = wire_format.receive(control)
            except TimeoutError:
                self.kill()
                raise BrokerStartError(
                    f"node {self.id} did not start within {_START_S_MAX:.0f} s\n{self.tail()}"
                ) from None
            if message is wire_format.ENDED or "failed" in message:
                reason = "it ended" if message is wire_format.ENDED else message["failed"]
                self._await_end()
                raise BrokerStartError(f"node {self.id} cannot start: {reason}\n{self.tail()}")
            self._ready = True
            self.metrics_port = message["ready"]["metrics_port"]

    def start(self) -> None:
        """Start it on the data that it has, at the address that it had."""
        self.spawn()
        self.wait_until_ready()

    def stop(self, *, hand_over: bool = True) -> None:
        """Stop it gracefully (SIGTERM): it hands over what it leads, then ends.

        Without `hand_over` it does not wait for others to take over; they may be stopping too.
        """
        self.resume()
        self._end(signal.SIGTERM if hand_over else signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL: the process ends at once."""
        self._end(signal.SIGKILL)

    def restart(self, *, kill: bool = False) -> None:
        """Stop it gracefully, or kill it, and start it again."""
        if self.running:
            if kill:
                self.kill()
            else:
                self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: the process stands still, and its connections stay open."""
        self._signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """SIGCONT: a paused node continues."""
        if self._paused:
            self._signal(signal.SIGCONT)
            self._paused = False

    def _signal(self, number: int) -> None:
        with self._lock:
            if self.pid is None or not self._template.signal(self.pid, number):
                raise BrokerNotRunning(f"node {self.id} is not running")

    def _end(self, number: int) -> None:
        with self._lock:
            if self.running and self.pid is not None:
                self._template.signal(self.pid, number)
                self._await_end()

    def _await_end(self) -> None:
        """The end of the control socket shows that the process is about to end."""
        control, pid = self._socket(), self.pid
        if pid is None:
            return
        control.settimeout(_STOP_S_MAX)
        try:
            while wire_format.receive(control) is not wire_format.ENDED:
                pass
        except TimeoutError:
            self._template.signal(pid, signal.SIGKILL)
        except OSError:
            pass
        self._template.wait(pid)
        self._let_go()

    def _let_go(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control = self.pid = None
        self._paused = False

    def _spec(self) -> dict[str, Any]:
        return {
            "properties": dict(self.properties),
            "cluster_id": self._cluster.cluster_id,
            "seed": self._cluster.seed,
            "start": self._starts,
            "log": str(self.log_file),
            "log_level": self._cluster.log_level,
            "clock_ahead_ms": self._clock_ahead_ms,
            "wall_ahead_ms": self._wall_ahead_ms,
            # How often a limited one has hit is known to the process that ended.
            "rules": [rule.to_json() for rule in self._rules.values() if rule.times is None],
            "cuts": self.cuts,
            "room": list(self._room.items()),
        }

    # Orders.

    def _socket(self) -> socket.socket:
        if self._control is None:
            raise BrokerNotRunning(f"node {self.id} is not running")
        return self._control

    def order(self, what: str, *arguments: Any) -> Any:
        """Carry out an order inside the node."""
        with self._lock:
            if self._paused:
                raise BrokerError(f"node {self.id} is paused: resume it first")
            self.wait_until_ready()
            control = self._socket()
            try:
                wire_format.send(control, {"order": what, "arguments": arguments})
                answer = wire_format.receive(control)
            except TimeoutError:
                raise BrokerError(f"node {self.id} does not answer\n{self.tail()}") from None
            except OSError:
                answer = wire_format.ENDED
            if answer is wire_format.ENDED:
                raise BrokerNotRunning(f"node {self.id} has ended\n{self.tail()}")
            if "error" in answer:
                raise BrokerError(f"node {self.id}: {answer['error']}")
            return answer["result"]

    def _order_if_running(self, what: str, *arguments: Any) -> None:
        with suppress(BrokerNotRunning):
            self.order(what, *arguments)

    # Faults of requests.

    def slow(self, *apis: str, ms: float, **options: Unpack[FaultOptions]) -> Fault:
        """Delay requests of these APIs, or of all, by `ms` before they are carried out."""
        return self._set("slow", apis, options, delay_ms=_positive("ms", ms))

    def drop(self, *apis: str, lose: Lost = "request", **options: Unpack[FaultOptions]) -> Fault:
        """Never answer: the request is lost, or it is carried out and its response is lost.

        The client waits for its own request timeout.
        """
        return self._set("drop", apis, options, carried_out=_is_response(lose))

    def disconnect(
        self, *apis: str, lose: Lost = "request", **options: Unpack[FaultOptions]
    ) -> Fault:
        """Close the connection instead of answering, before or after the request is carried out."""
        return self._set("disconnect", apis, options, carried_out=_is_response(lose))

    def fail(self, *apis: str, error: str | int, **options: Unpack[FaultOptions]) -> Fault:
        """Answer with an error, by Kafka's name or code, and carry nothing out."""
        from moldau.testing.machine.names import error_number

        return self._set("fail", apis, options, error=error_number(error))

    def _set(self, kind: Any, apis: tuple[str, ...], options: FaultOptions, **values: Any) -> Fault:
        from moldau.testing.machine.names import api_keys

        probability = options.get("probability", 1.0)
        if not 0 <= probability <= 1:
            raise ValueError(f"probability={probability}: it is between 0 and 1")
        number = next(self._numbers)
        rule = Rule(rule_id=number, kind=kind, apis=api_keys(apis), **options, **values)
        self.order("rule.add", rule.to_json())
        self._rules[rule.rule_id] = rule
        return Fault(self, rule)

    def remove_rule(self, rule: Rule) -> None:
        self._rules.pop(rule.rule_id, None)
        self._order_if_running("rule.remove", rule.rule_id)

    def heal(self) -> None:
        """Remove all faults of requests, network and disks of this node; clocks stay."""
        self._rules.clear()
        self._room.clear()
        self.cuts = []
        self._order_if_running("heal")
        self._order_if_running("disk.free")

    def set_cuts(self, cuts: list[dict[str, Any]]) -> None:
        self.cuts = cuts
        self._order_if_running("cuts", cuts)

    # Faults of the machine.

    def fill_disk(self, *, log_dir: int = 0, free_bytes: int = 0) -> None:
        """Leave only `free_bytes` in a log directory: larger writes fail as on a full disk.

        As in Kafka, the broker takes such a log directory offline, and stops if it has no other.
        """
        if not 0 <= log_dir < self._cluster.log_dirs:
            raise ValueError(f"log_dir={log_dir}: the node has {self._cluster.log_dirs}")
        self._room[log_dir] = free_bytes
        self._order_if_running("disk.room", log_dir, free_bytes)

    def free_disk(self) -> None:
        """The disk has room again; a log directory that went offline is back after a restart."""
        self._room.clear()
        self._order_if_running("disk.free")

    def jump_clock(self, seconds: float) -> None:
        """Set the node's wall clock forward or back; timers are not affected."""
        ms = round(seconds * 1000)
        self._wall_ahead_ms += ms
        self._order_if_running("clock.jump", ms)

    def advance_clock(self, seconds: float) -> None:
        """Let time pass for the node: everything due in it happens now."""
        if seconds < 0:
            raise ValueError("time only passes forward; jump_clock sets a wall clock back")
        ms = round(seconds * 1000)
        self._clock_ahead_ms += ms
        self._order_if_running("clock.advance", ms)

    # Looking.

    def patience_ms(self) -> int | None:
        """How long until it takes another node for dead if nothing arrives; None: for ever."""
        try:
            patience: int | None = self.order("clock.patience")
        except BrokerNotRunning:
            return None
        return patience

    def known_brokers(self) -> set[int]:
        """Brokers that can be used, as this node knows it."""
        return set(self.order("brokers"))

    def tail(self, size: int = _LOG_TAIL) -> str:
        """The end of its log."""
        return self.logs[-size:]


def _positive(name: str, value: float) -> float:
    if value < 0:
        raise ValueError(f"{name}={value}: it cannot be negative")
    return value


def _is_response(lose: str) -> bool:
    if lose not in ("request", "response"):
        raise ValueError(f'lose={lose!r}: "request" or "response"')
    return lose == "response"
