"""ClientQuotas: a node's quotas, for its handlers and its dispatchers.

    request -> handled -> recorded -> throttle_time_ms in the response, connection muted

A response is sent at once, and the connection handles no further request until the throttle time is
over (KIP-219). Time is handling time on the event loop: this node has one thread, so 100 percent
are one core.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from typing import Any, Final

from moldau.broker.config import BrokerConfig
from moldau.broker.network.context import RequestContext
from moldau.broker.network.machine.rates import Window
from moldau.broker.security.plugins import load_class
from moldau.broker.security.quotas.machine.client_quotas import (
    MutationQuotas,
    RateQuotas,
    RequestMutations,
)
from moldau.broker.security.quotas.machine.entities import (
    ClientQuotaCallback,
    QuotaEntity,
    QuotaType,
)
from moldau.clock import Clock
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message

_PERCENT_PER_NS: Final = 100 / 1_000_000_000
CALLBACK_CLASS: Final = "client.quota.callback.class"


def load_quota_callback(config: BrokerConfig) -> ClientQuotaCallback | None:
    """The user's own rules; ConfigError if they cannot be loaded."""
    name = config["client.quota.callback.class"]
    if name is None:
        return None
    methods = ("configure", "quota_metric_tags", "quota_limit", "update_quota", "remove_quota")
    callback: ClientQuotaCallback = load_class(CALLBACK_CLASS, name, methods=methods)()
    callback.configure(config.originals)
    return callback


class ClientQuotas:
    """`active` is False while nobody has a quota: that is all that a request then costs."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        cpu_ns: Callable[[], int],
        *,
        callback: ClientQuotaCallback | None = None,
    ) -> None:
        """`cpu_ns` measures handling time; `callback` is client.quota.callback.class."""
        self._clock = clock
        self.cpu_ns = cpu_ns
        window = Window(config["quota.window.num"], 1000 * config["quota.window.size.seconds"])
        of_controller = Window(
            config["controller.quota.window.num"],
            1000 * config["controller.quota.window.size.seconds"],
        )
        self._produce = RateQuotas(QuotaType.PRODUCE, window, callback=callback)
        self._fetch = RateQuotas(QuotaType.FETCH, window, callback=callback)
        # A slow request must not block its client for minutes.
        self._request = RateQuotas(
            QuotaType.REQUEST, window, throttle_ms_max=window.sample_ms, callback=callback
        )
        self._mutations = MutationQuotas(of_controller, callback=callback)
        self._callback = callback
        self._passed_on: dict[tuple[QuotaType, QuotaEntity], float] = {}
        self.active = callback is not None
        #: Called with the API and the ms whenever a client is held back.
        self.on_throttled: Callable[[ApiKey, int], None] | None = None

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """These are all quotas that are set now."""
        if self._callback is not None:
            self._pass_on(self._callback, quotas)
        for each in (self._produce, self._fetch, self._request, self._mutations):
            each.update(quotas)
        self.active = self._callback is not None or any(
            each.active for each in (self._produce, self._fetch, self._request, self._mutations)
        )

    def _pass_on(
        self,
        callback: ClientQuotaCallback,
        quotas: Mapping[QuotaEntity, Mapping[str, float]],
    ) -> None:
        """Have own rules learn what was set and removed."""
        now = {
            (quota_type, entity): values[quota_type.value]
            for entity, values in quotas.items()
            for quota_type in QuotaType
            if quota_type.value in values
        }
        for (quota_type, entity), value in now.items():
            if self._passed_on.get((quota_type, entity)) != value:
                callback.update_quota(quota_type, entity, value)
        for quota_type, entity in self._passed_on.keys() - now.keys():
            callback.remove_quota(quota_type, entity)
        self._passed_on = now

    def rates(self) -> Iterator[tuple[str, dict[str, str], float, int]]:
        """For each type of quota, in Kafka's word: who is limited, per second, throttle time."""
        now_ms = self._clock.elapsed_ms()
        for name, quotas in (
            ("Produce", self._produce),
            ("Fetch", self._fetch),
            ("Request", self._request),
        ):
            for user, client_id, rate, throttle_ms in quotas.rates(now_ms):
                who = {"user": user, "client-id": client_id}
                tags = {tag: value for tag, value in who.items() if value}
                yield name, tags, rate, throttle_ms

    def _muted(self, context: RequestContext, throttle_ms: int) -> int:
        if throttle_ms:
            connection = context.connection
            connection.mute_ms = max(connection.mute_ms, throttle_ms)
        if throttle_ms and self.on_throttled is not None:
            self.on_throttled(context.api_key, throttle_ms)
        return throttle_ms

    # Produce and Fetch.

    def on_produced(
        self, context: RequestContext, size: int, handled_ns: int, *, acks_zero: bool
    ) -> int:
        """The throttle time in ms of a Produce request of `size` bytes."""
        now_ms = self._clock.elapsed_ms()
        client = context.principal, context.client_id or ""
        throttle_ms = 0
        if self._produce.active:
            throttle_ms = self._produce.record(*client, size, now_ms)
        if self._request.active and not acks_zero:
            used = handled_ns * _PERCENT_PER_NS
            throttle_ms = max(throttle_ms, self._request.record(*client, used, now_ms))
        return self._muted(context, throttle_ms)

    def fetch_size_max(self, context: RequestContext, size: int) -> int:
        """As much of `size` as the client may get at all."""
        if not self._fetch.active:
            return size
        now_ms = self._clock.elapsed_ms()
        most = self._fetch.window_max(context.principal, context.client_id or "", now_ms)
        return size if most is None else int(min(size, most))

    def on_fetched(self, context: RequestContext, size: int, handled_ns: int) -> int:
        """The throttle time in ms of a Fetch response of `size` bytes, which then is not sent."""
        now_ms = self._clock.elapsed_ms()
        client = context.principal, context.client_id or ""
        throttle_ms = 0
        if self._request.active:
            throttle_ms = self._request.record(*client, handled_ns * _PERCENT_PER_NS, now_ms)
        if self._fetch.active:
            throttle_ms = max(throttle_ms, self._fetch.record(*client, size, now_ms))
            if throttle_ms:
                self._fetch.take_back(*client, size, now_ms)
        return self._muted(context, throttle_ms)

    # Controller mutations.

    def mutations(self, context: RequestContext, *, strict_since: int) -> RequestMutations:
        """Counts the mutations of a request; its API has an error for them since that version."""
        return self._mutations.of_request(
            context.principal,
            context.client_id or "",
            strict=context.api_version >= strict_since,
            now_ms=self._clock.elapsed_ms(),
        )

    # All other requests.

    def limit(
        self, context: RequestContext, handle: Callable[[], Message | Awaitable[Message]]
    ) -> Message | Awaitable[Message]:
        """Has a request handled, and limits its client by the time that it took."""
        started_ns = self.cpu_ns()
        response = handle()
        if isinstance(response, Message):
            return self._throttled(context, response, self.cpu_ns() - started_ns)
        return self._limit_later(context, response, self.cpu_ns() - started_ns)

    async def _limit_later(
        self, context: RequestContext, awaited: Awaitable[Message], handled_ns: int
    ) -> Message:
        timed = _Timed(awaited, self.cpu_ns)
        response = await timed
        return self._throttled(context, response, handled_ns + timed.spent_ns)

    def _throttled(self, context: RequestContext, response: Message, handled_ns: int) -> Message:
        # What a controller answered may have its own: of its mutations.
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if self._request.active:
            used = handled_ns * _PERCENT_PER_NS
            recorded_ms = self._request.record(
                context.principal, context.client_id or "", used, self._clock.elapsed_ms()
            )
            throttle_ms = max(throttle_ms, recorded_ms)
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        self._muted(context, throttle_ms)
        return response


class _Timed:
    """Awaits something and adds up how long its steps take, without the time between them."""

    def __init__(self, awaited: Awaitable[Message], now_ns: Callable[[], int]) -> None:
        self._awaited = awaited
        self._now_ns = now_ns
        self.spent_ns = 0

    def __await__(self) -> Generator[Any, Any, Message]:
        steps = self._awaited.__await__()
        thrown: BaseException | None = None
        while True:
            started_ns = self._now_ns()
            try:
                # Nothing is ever sent into an awaitable of asyncio, only thrown: a cancellation.
                waits_for = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration as ended:
                response: Message = ended.value
                return response
            finally:
                self.spent_ns += self._now_ns() - started_ns
            thrown = None
            try:
                yield waits_for
            except BaseException as error:
                thrown = error
