"""Carries out in a node what a test orders over its socket.

Orders are carried out one after the other, each is answered, and a test that is gone ends the node.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from moldau.testing import wire_format
from moldau.testing.machine.rules import Cut, Cuts, Rule

if TYPE_CHECKING:
    from moldau.broker.app import Node, NodeInfo
    from moldau.testing.process.world import World

_LENGTH: Final = struct.Struct(">I")


class Control:
    def __init__(self, to_test: socket.socket, world: World, node: Node) -> None:
        self._socket = to_test
        self._world = world
        self._node = node
        self._received = bytearray()
        self._orders: dict[str, Callable[..., Any]] = {
            "rule.add": self._add_rule,
            "rule.remove": world.board.remove,
            "rule.hits": world.board.rules.hits,
            "cuts": self._set_cuts,
            "heal": world.board.clear,
            "clock.advance": world.clock.advance,
            "clock.jump": world.clock.jump,
            "clock.patience": self._patience_ms,
            "disk.room": self._set_room,
            "disk.free": self._free_disk,
            "brokers": self._brokers,
        }

    def prepare(self, spec: Mapping[str, Any]) -> None:
        """What was set before the node started."""
        for rule in spec["rules"]:
            self._add_rule(rule)
        self._set_cuts(spec["cuts"])
        for index, room in spec["room"]:
            self._set_room(index, room)

    def start(self) -> None:
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._on_readable)

    def announce(self, info: NodeInfo) -> None:
        self._tell(
            {
                "ready": {
                    "cluster_id": info.cluster_id,
                    "pid": os.getpid(),
                    "metrics_port": info.metrics_port,
                }
            }
        )

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # Nobody wants this node any more, and nothing of it is to be kept.
            os.kill(os.getpid(), signal.SIGKILL)
        self._received += data
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            end = _LENGTH.size + length
            if len(self._received) < end:
                return
            order = json.loads(self._received[_LENGTH.size : end])
            del self._received[:end]
            self._tell(self._obey(order))

    def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": self._orders[order["order"]](*order["arguments"])}
        except (OSError, ValueError, LookupError) as error:
            return {"error": str(error)}

    def _tell(self, message: dict[str, Any]) -> None:
        # Answers are small, and the test waits for each: the socket always has room.
        self._socket.send(wire_format.encode(message))

    # Orders.

    def _add_rule(self, rule: dict[str, Any]) -> None:
        self._world.board.rules.add(Rule.from_json(rule))

    def _set_cuts(self, cuts: list[dict[str, Any]]) -> None:
        self._world.board.set_cuts(Cuts(Cut(**cut) for cut in cuts))

    def _set_room(self, index: int, room: int) -> None:
        folder = self._world.config.log_dirs[index]
        self._world.disk.room_by_folder[folder] = room

    def _free_disk(self) -> None:
        self._world.disk.room_by_folder.clear()

    def _brokers(self) -> list[int]:
        """Who can be used, as this node knows it."""
        brokers = self._node.metadata.image.brokers
        return [each for each, state in brokers.items() if not state.fenced]

    def _patience_ms(self) -> int | None:
        """How long until this node takes another for gone if it hears nothing; None: for ever."""
        node = self._node
        ends_ms: list[int | None] = [node.metadata.raft.machine.gives_up_at_ms]
        if node.metadata.is_active and (heartbeats := node.metadata.controller.heartbeats):
            ends_ms.append(heartbeats.expires_at_ms())
        if node.broker is not None:
            ends_ms.append(node.broker.lifecycle.call_ends_at_ms)
        end_ms = min((each for each in ends_ms if each is not None), default=None)
        return None if end_ms is None else end_ms - self._world.clock.elapsed_ms()
