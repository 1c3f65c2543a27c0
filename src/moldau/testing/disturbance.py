"""What a test can do to a whole cluster: faults on all nodes, cuts in the network, time.

Cuts are between nodes and between clients and nodes. Time that is put forward passes in steps on
all nodes together, so that those that are alive do not take each other for dead.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moldau.testing.nodes import Fault, FaultOptions, Lost, Node

__all__ = ["Disturbance", "Faults", "InstantFaults"]

#: Less than the time after which a node of a cluster counts as gone.
_STEP_S: Final = 0.4
#: Nodes that can reach each other do so between two steps; one that cannot is not waited for.
_HEARING_S_MAX: Final = 5.0
_HEARING_INTERVAL_S: Final = 0.001
_ADVANCE_S_MAX: Final = 3_600.0


class Faults:
    """The same fault on several nodes."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults = list(faults)

    @property
    def hits(self) -> int:
        """How many requests were hit, on all nodes together."""
        return sum(fault.hits for fault in self._faults)

    def remove(self) -> None:
        for fault in self._faults:
            fault.remove()

    def __enter__(self) -> Faults:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()


class InstantFaults(ABC):
    """Faults that take effect at once, without waiting: also for tests on an event loop."""

    @property
    @abstractmethod
    def nodes(self) -> dict[int, Node]:
        """By their ids, which count from 1."""

    # Every node.

    def slow(self, *apis: str, ms: float, **options: Unpack[FaultOptions]) -> Faults:
        """`Node.slow` on every node that runs."""
        return Faults(node.slow(*apis, ms=ms, **options) for node in self._running())

    def drop(self, *apis: str, lose: Lost = "request", **options: Unpack[FaultOptions]) -> Faults:
        """`Node.drop` on every node that runs."""
        return Faults(node.drop(*apis, lose=lose, **options) for node in self._running())

    def disconnect(
        self, *apis: str, lose: Lost = "request", **options: Unpack[FaultOptions]
    ) -> Faults:
        """`Node.disconnect` on every node that runs."""
        return Faults(node.disconnect(*apis, lose=lose, **options) for node in self._running())

    def fail(self, *apis: str, error: str | int, **options: Unpack[FaultOptions]) -> Faults:
        """`Node.fail` on every node that runs."""
        return Faults(node.fail(*apis, error=error, **options) for node in self._running())

    def _running(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.running]

    # The network.

    def partition(
        self,
        *sides: int | Node | Iterable[int | Node],
        one_way: bool = False,
    ) -> None:
        """Cut the network between groups of nodes; nodes in none of them are one more group.

        partition(1) cuts node 1 off, partition([1, 2], [3, 4]) makes two halves of four. Clients
        still reach every node. With `one_way` the later sides receive nothing from earlier ones.
        """
        groups = [self._ids(side) for side in sides]
        named = {node_id for group in groups for node_id in group}
        rest = set(self.nodes) - named
        if rest:
            groups.append(rest)
        for index, near in enumerate(groups):
            for far in groups[index + 1 :]:
                self._cut(near, far, one_way=one_way)

    def partition_clients(
        self, *nodes: int | Node, client_id: str = "*", one_way: bool = False
    ) -> None:
        """Cut clients, all or those whose client.id matches the pattern, off from these nodes, or
        from all. With `one_way` nodes receive requests, but clients get no responses."""
        for node_id in self._ids(nodes) or set(self.nodes):
            cut = {"far": client_id, "incoming": not one_way, "outgoing": True}
            self._add_cut(node_id, cut)

    def heal_network(self) -> None:
        """Remove all cuts; requests and responses that were held back arrive."""
        for node in self.nodes.values():
            node.set_cuts([])

    def jump_clock(self, seconds: float) -> None:
        """Set the wall clocks of all nodes forward or back; timers are not affected."""
        for node in self.nodes.values():
            node.jump_clock(seconds)

    def _ids(self, side: int | Node | Iterable[int | Node]) -> set[int]:
        members = side if isinstance(side, Iterable) else [side]
        ids = {each if isinstance(each, int) else each.id for each in members}
        unknown = ids - set(self.nodes)
        if unknown:
            raise ValueError(f"no node {sorted(unknown)[0]}: there are {sorted(self.nodes)}")
        return ids

    def _cut(self, near: set[int], far: set[int], *, one_way: bool) -> None:
        for one in near:
            for other in far:
                # Each node holds back what comes in as a request or goes out as an answer.
                self._add_cut(one, {"far": other, "incoming": not one_way, "outgoing": True})
                self._add_cut(other, {"far": one, "incoming": True, "outgoing": not one_way})

    def _add_cut(self, node_id: int, cut: dict[str, Any]) -> None:
        node = self.nodes[node_id]
        node.set_cuts([*node.cuts, cut])


class Disturbance(InstantFaults):
    """Everything that can be done to a cluster on purpose."""

    # Processes.

    def kill(self) -> None:
        """SIGKILL to every node."""
        for node in self.nodes.values():
            node.kill()

    def stop(self) -> None:
        """Stop every node gracefully, without handing over: all of them stop."""
        for node in self._running():
            node.stop(hand_over=False)

    def pause(self) -> None:
        """SIGSTOP to every node."""
        for node in self._running():
            node.pause()

    def resume(self) -> None:
        """SIGCONT to every node."""
        for node in self.nodes.values():
            node.resume()

    def start_nodes(self) -> None:
        """Start every node that does not run, and wait until all know each other."""
        starting = [node for node in self.nodes.values() if not node.running]
        for node in starting:
            node.spawn()
        for node in starting:
            node.wait_until_ready()
        self.wait_until_whole()

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill every node and start all again."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.start_nodes()

    @abstractmethod
    def wait_until_whole(self, timeout: float = 30.0) -> None:
        """Until all nodes that run know each other as usable."""

    def heal(self) -> None:
        """Remove all faults of requests, network and disks, resume paused nodes, and start nodes
        that are down. Clocks stay as they are."""
        for node in self.nodes.values():
            node.resume()
            node.heal()
        self.start_nodes()

    @property
    def disturbed(self) -> bool:
        """Whether there is something for `heal` to undo."""
        return any(node.disturbed for node in self.nodes.values())

    @contextmanager
    def partitioned(self, *sides: int | Node | Iterable[int | Node]) -> Iterator[None]:
        """`partition` for the length of a `with` block."""
        with ExitStack() as stack:
            stack.callback(self.heal_network)
            self.partition(*sides)
            yield

    # Time and disks.

    def advance_clock(self, seconds: float) -> None:
        """Let time pass on all nodes: sessions expire, transactions time out, records age."""
        if not 0 <= seconds <= _ADVANCE_S_MAX:
            raise ValueError(
                f"seconds={seconds}: 0 to {_ADVANCE_S_MAX:.0f}; jump_clock sets a wall clock by "
                "any time"
            )
        left_s = seconds
        while left_s > 0:
            step_s = left_s if len(self.nodes) == 1 else min(left_s, _STEP_S)
            self._wait_for_patience(step_s)
            for node in self.nodes.values():
                node.advance_clock(step_s)
            left_s -= step_s
        self._wait_for_patience(0)

    def _wait_for_patience(self, step_s: float) -> None:
        """Until nobody would take anybody for gone after this step; those who are gone, will be."""
        deadline = time.monotonic() + _HEARING_S_MAX
        while any(
            patience_ms is not None and patience_ms <= step_s * 1000
            for patience_ms in (node.patience_ms() for node in self.nodes.values())
        ):
            if time.monotonic() >= deadline:
                return
            time.sleep(_HEARING_INTERVAL_S)

    def fill_disk(self, *, free_bytes: int = 0) -> None:
        """Leave only `free_bytes` in the log directories of all nodes."""
        for node in self.nodes.values():
            for log_dir in range(len(node.log_dirs)):
                node.fill_disk(log_dir=log_dir, free_bytes=free_bytes)

    def free_disk(self) -> None:
        """All disks have room again."""
        for node in self.nodes.values():
            node.free_disk()
