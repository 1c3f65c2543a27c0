"""PeerCalls: sends requests to other nodes of the quorum, and checks that the cluster is the same.

Channels are opened when they are needed and stay open. If all servers that a node knows belong to
another cluster, the node fails; if some do, their addresses may be wrong, which is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from moldau.broker.raft.machine.asking_codec import decode_reply, encode_request
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.rpcs import Peer, Reply, Request
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.clock import Clock
from moldau.peers.channel import (
    Channel,
    ChannelError,
    ConnectionRefused,
    Transport,
    UnsupportedVersion,
)
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode, WireError

COMPLAINT_INTERVAL_MS = 5_000

logger = logging.getLogger(__name__)

Address = tuple[str, int]


class PeerCalls:
    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        settings: QuorumSettings,
        *,
        cluster_id: str,
        voters: Callable[[], Iterable[Address]],
    ) -> None:
        """`voters` are the addresses of the other voters as they are known now."""
        self._transport = transport
        self._clock = clock
        self._settings = settings
        self._cluster_id = cluster_id
        self._voters = voters
        self._channels: dict[Address, Channel] = {}
        self._reached_ms: dict[Address, ElapsedMs] = {}
        self._strangers: set[Address] = set()
        self._known_to_others = False
        self._complained_ms = ElapsedMs(-COMPLAINT_INTERVAL_MS)

    async def call(self, peer: Peer, request: Request) -> Reply | None:
        """The response, None if none came; ConnectionRefused if the peer's address refuses
        connections, MetadataError if this node belongs to another cluster."""
        settings = self._settings
        try:
            key, message = encode_request(request, self._cluster_id)
            response = await self._channel(peer).call(
                key, message, timeout_ms=settings.request_timeout_ms
            )
            self._reached_ms[peer.host, peer.port] = self._clock.elapsed_ms()
            reply = decode_reply(request, response, settings.listener_name)
        except UnsupportedVersion:
            return Reply(error=ErrorCode.UNSUPPORTED_VERSION)
        except ConnectionRefused:
            raise
        except ChannelError as error:
            logger.debug("%s", error)
            return None
        except (WireError, ValueError) as error:
            self.complain(f"the response of node {peer.id} cannot be read: {error}")
            return None
        self._check_cluster(peer, reply)
        return reply

    def reached(self, within_ms: int) -> set[Address]:
        """The addresses that have answered anything lately."""
        since_ms = self._clock.elapsed_ms() - within_ms
        return {where for where, at_ms in self._reached_ms.items() if at_ms >= since_ms}

    def complain(self, what: str) -> None:
        """Log an error, at most every few seconds."""
        now_ms = self._clock.elapsed_ms()
        if now_ms - self._complained_ms >= COMPLAINT_INTERVAL_MS:
            self._complained_ms = now_ms
            logger.error("%s", what)

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    def _channel(self, peer: Peer) -> Channel:
        where = (peer.host, peer.port)
        channel = self._channels.get(where)
        if channel is None:
            name = self._settings.listener_name
            channel = self._transport.channel(peer.id, peer.host, peer.port, name)
            self._channels[where] = channel
        return channel

    def _check_cluster(self, peer: Peer, reply: Reply) -> None:
        if reply.error is not ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._known_to_others = True
            return
        self._strangers.add((peer.host, peer.port))
        asked = {(each.host, each.port) for each in self._settings.bootstrap} | {*self._voters()}
        if not self._known_to_others and asked <= self._strangers:
            where = ", ".join(f"{host}:{port}" for host, port in sorted(asked))
            raise MetadataError(
                f"the log directories of this node belong to cluster {self._cluster_id}, but the"
                f" controllers at {where} belong to another one. Format the log directories with"
                " that cluster's id, or correct controller.quorum.bootstrap.servers (or"
                " controller.quorum.voters)"
            )
        self.complain(f"{peer.host}:{peer.port} belongs to another cluster than this node")
