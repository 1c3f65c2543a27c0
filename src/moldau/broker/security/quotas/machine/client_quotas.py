"""The quotas of clients: who is counted with whom, and who has to wait for how long.

Invariants: a client without a quota costs one lookup and is not counted; a change of quotas takes
effect with the next request and keeps what was counted; what is remembered about clients that are
gone is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from moldau.broker.network.machine.rates import SampledRate, TokenBucket, Window
from moldau.broker.security.quotas.machine.entities import (
    ClientQuotaCallback,
    QuotaEntity,
    QuotaLevels,
    QuotaType,
    user_of,
)
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

#: When as many clients are known, those that have become idle are looked for.
KNOWN_MAX: Final = 1_000

UsageT = TypeVar("UsageT", SampledRate, TokenBucket)
#: What identifies a quota: the tags of a callback, or the user and client id.
Key = tuple[str, ...] | frozenset[tuple[str, str]]


class Share(NamedTuple, Generic[UsageT]):
    """What a client may use, and what all that share it have used."""

    limit: float
    usage: UsageT


class _Shares(Generic[UsageT]):
    """Finds what applies to a client, for one type of quota."""

    def __init__(
        self,
        quota_type: QuotaType,
        usage: type[UsageT],
        window: Window,
        callback: ClientQuotaCallback | None = None,
    ) -> None:
        self._type = quota_type
        self._new_usage: type[UsageT] = usage
        self._window = window
        self._callback = callback
        self._levels = QuotaLevels()
        self._by_client: dict[tuple[str, str], Share[UsageT] | None] = {}
        self._usage: dict[Key, UsageT] = {}
        self._known_max = KNOWN_MAX
        self.active = callback is not None

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """These are all quotas that are set now."""
        self._levels = QuotaLevels.of(quotas, self._type)
        self._by_client.clear()
        if self._callback is None:
            self.active = bool(self._levels)
            if not self.active:
                self._usage.clear()

    def find(self, principal: str, client_id: str, now_ms: ElapsedMs) -> Share[UsageT] | None:
        if self._callback is not None:
            return self._ask(self._callback, principal, client_id, now_ms)
        client = principal, client_id
        try:
            return self._by_client[client]
        except KeyError:
            pass
        tags = self._levels.tags(user_of(principal), client_id)
        limit = self._levels.limit(tags)
        found = None if limit is None else Share(limit, self._usage_of(tags, now_ms))
        if len(self._by_client) >= self._known_max:
            self._by_client.clear()
        self._by_client[client] = found
        return found

    def _ask(
        self, callback: ClientQuotaCallback, principal: str, client_id: str, now_ms: ElapsedMs
    ) -> Share[UsageT] | None:
        tags = callback.quota_metric_tags(self._type, principal, client_id)
        if not tags:
            return None
        limit = callback.quota_limit(self._type, tags)
        if limit is None:
            return None
        return Share(limit, self._usage_of(frozenset(tags.items()), now_ms))

    def usages(self) -> Iterator[tuple[str, str, UsageT, float]]:
        """User and client id of all who are counted, with their quota; one of the two is empty
        where a quota is for the other. A callback's own are left out."""
        for key, usage in self._usage.items():
            if isinstance(key, frozenset) or self._callback is not None:
                continue
            user, client_id = key
            limit = self._levels.limit((user, client_id))
            if limit is not None:
                yield user, client_id, usage, limit

    def _usage_of(self, key: Key, now_ms: ElapsedMs) -> UsageT:
        usage = self._usage.get(key)
        if usage is None:
            if len(self._usage) >= self._known_max:
                self._drop_idle(now_ms)
            usage = self._usage[key] = self._new_usage(self._window)
        return usage

    def _drop_idle(self, now_ms: ElapsedMs) -> None:
        # Those that are found again by client must be the ones that are counted.
        self._by_client.clear()
        self._usage = {key: each for key, each in self._usage.items() if not each.is_idle(now_ms)}
        self._known_max = max(KNOWN_MAX, 2 * len(self._usage))


class RateQuotas:
    """One type of quota that is a rate: bytes per second, or percent of a second."""

    def __init__(
        self,
        quota_type: QuotaType,
        window: Window,
        *,
        throttle_ms_max: int | None = None,
        callback: ClientQuotaCallback | None = None,
    ) -> None:
        self._shares = _Shares(quota_type, SampledRate, window, callback)
        self._window = window
        self._throttle_ms_max = throttle_ms_max

    @property
    def active(self) -> bool:
        """Whether anybody has a quota of this type."""
        return self._shares.active

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._shares.update(quotas)

    def record(self, principal: str, client_id: str, value: float, now_ms: ElapsedMs) -> int:
        """Count `value`; the result is the time in ms that the client has to wait."""
        share = self._shares.find(principal, client_id, now_ms)
        if share is None:
            return 0
        share.usage.record(value, now_ms)
        throttle_ms = share.usage.throttle_ms(share.limit, now_ms)
        if self._throttle_ms_max is not None:
            return min(throttle_ms, self._throttle_ms_max)
        return throttle_ms

    def rates(self, now_ms: ElapsedMs) -> Iterator[tuple[str, str, float, int]]:
        """User and client id of those whom quotas limit, what they use per second, and how long
        they would wait now in ms."""
        for user, client_id, usage, limit in list(self._shares.usages()):
            rate, throttle_ms = usage.per_second(now_ms), usage.throttle_ms(limit, now_ms)
            yield user, client_id, rate, throttle_ms

    def take_back(self, principal: str, client_id: str, value: float, now_ms: ElapsedMs) -> None:
        """What was recorded is not sent after all."""
        share = self._shares.find(principal, client_id, now_ms)
        if share is not None:
            share.usage.record(-value, now_ms)

    def window_max(self, principal: str, client_id: str, now_ms: ElapsedMs) -> float | None:
        """What a client that used nothing lately may use at once: more would always be throttled,
        and it would never get any further."""
        share = self._shares.find(principal, client_id, now_ms)
        if share is None:
            return None
        window = self._window
        return share.limit * max(1, window.samples - 1) * window.sample_ms / 1000


class MutationQuotas:
    """How many partitions clients may create and delete (KIP-599)."""

    def __init__(self, window: Window, *, callback: ClientQuotaCallback | None = None) -> None:
        self._shares = _Shares(QuotaType.CONTROLLER_MUTATION, TokenBucket, window, callback)

    @property
    def active(self) -> bool:
        return self._shares.active

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._shares.update(quotas)

    def of_request(
        self, principal: str, client_id: str, *, strict: bool, now_ms: ElapsedMs
    ) -> RequestMutations:
        share = self._shares.find(principal, client_id, now_ms) if self.active else None
        return RequestMutations(share, strict=strict, now_ms=now_ms)


class RequestMutations:
    """The mutations of one request. A `strict` one is refused once the quota is exceeded; others,
    of clients that do not know that error, are carried out and throttled afterwards."""

    __slots__ = ("_now_ms", "_share", "_strict", "throttle_ms")

    def __init__(
        self, share: Share[TokenBucket] | None, *, strict: bool, now_ms: ElapsedMs
    ) -> None:
        self._share = share
        self._strict = strict
        self._now_ms = now_ms
        self.throttle_ms = 0

    def record(self, count: int) -> None:
        """Raises ApiError if the quota is exceeded already."""
        share = self._share
        if share is None:
            return
        if self._strict:
            # Checked first: a large request is never refused for its own size.
            self._check(share)
            share.usage.take(count, share.limit, self._now_ms)
        else:
            share.usage.take(count, share.limit, self._now_ms)
            self.throttle_ms = share.usage.throttle_ms(share.limit, self._now_ms)

    def _check(self, share: Share[TokenBucket]) -> None:
        self.throttle_ms = share.usage.throttle_ms(share.limit, self._now_ms)
        if self.throttle_ms:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
