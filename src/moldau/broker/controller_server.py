"""The controller's part of a node: its listeners, and its registration with the active one.

The quorum itself and the decisions of the active controller run in `MetadataShell`; this part makes
them reachable.
"""

from __future__ import annotations

from moldau.broker.controller_registration import ControllerRegistrationManager
from moldau.broker.controller_table import ControllerParts, controller_routes
from moldau.broker.handlers.envelope import EnvelopeHandler
from moldau.broker.metadata.broker_watch import BrokerWatch
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.routes import Route
from moldau.broker.security.authorization.apis.table import CONTROLLER_RULES
from moldau.broker.security.authorization.guard import guarded
from moldau.broker.security.authorization.machine.image_topics import ImageTopicNames
from moldau.broker.shared import Shared, endpoints_of
from moldau.broker.token_sweeper import TokenSweeper
from moldau.wire.apis import ApiKey
from moldau.wire.uuids import random_uuid


class ControllerServer:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        config = shared.config
        self._listeners = tuple(each.name for each in config.controller_listeners)
        environment = shared.environment
        self._watch = BrokerWatch(
            shared.metadata, environment.transport, environment.clock, node_id=shared.node_id
        )
        self._tokens = TokenSweeper(
            shared.metadata,
            environment.clock,
            interval_ms=config["delegation.token.expiry.check.interval.ms"],
        )
        # The node trusts itself; only what arrives over the network is checked.
        self._own_requests, self._requests = self._dispatchers()
        self._channel = shared.controller_channel()
        self._registration = ControllerRegistrationManager(
            node_id=shared.node_id,
            incarnation_id=random_uuid(environment.random_bytes(16)),
            endpoints=endpoints_of(config.advertised_controller_listeners, environment),
            controller=self._channel,
            clock=environment.clock,
        )

    def _dispatchers(self) -> tuple[Dispatcher, Dispatcher]:
        shared = self._shared
        routes = controller_routes(
            ControllerParts(
                cluster_id=shared.cluster_id,
                node_id=shared.node_id,
                config=lambda: shared.config,
                configs=shared.configs,
                metadata=shared.metadata,
                on_heartbeat=self._watch.on_heartbeat,
                loggers=shared.loggers,
                feature_levels=shared.feature_levels,
                elapsed_ms=shared.environment.clock.elapsed_ms,
                now_ms=shared.environment.clock.now_ms,
                random_bytes=shared.environment.random_bytes,
                quotas=shared.quotas,
                uses_acls=shared.uses_acls,
            )
        )
        topics = ImageTopicNames(lambda: shared.metadata.image)

        def checked(routes: dict[ApiKey, Route]) -> Dispatcher:
            found = guarded(routes, CONTROLLER_RULES, shared.authorization, topics)
            return Dispatcher(found, limits=shared.quotas, metrics=shared.request_metrics)

        # A request in an envelope is handled like one without, for the client that sent it.
        inside = checked(routes)
        routes[ApiKey.ENVELOPE] = Route(EnvelopeHandler(inside.dispatch).handle)
        return Dispatcher(routes, limits=shared.quotas), checked(routes)

    async def start(self) -> None:
        for name in self._listeners:
            self._shared.transport.serve(name, self._own_requests)
        await self._shared.environment.network.start(self._requests, self._listeners)
        self._shared.metadata.subscribe(self._registration.apply)
        self._watch.start()
        self._tokens.start()

    async def stop(self) -> None:
        """Register no more; requests are answered until the network stops."""
        self._registration.close()
        self._watch.close()
        self._tokens.close()
        self._channel.close()

    async def finish(self) -> None:
        """The network has stopped."""
        await self._own_requests.stop()
        await self._requests.stop()
