"""Stores, by hand for processors and by the language for tables.

All take the `StoreOptions`: logging, changelog_config, persistent, storage. `caching` forwards and
logs only the last of several updates of a key between commits.
"""

from __future__ import annotations

from typing import Any, Unpack

from moldau.streams.serdes import BYTES, Serde, SerdeLike, serde
from moldau.streams.stores.base import StoreBuilder, StoreContext, StoreOptions
from moldau.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from moldau.streams.windows import Duration, iso, millis


def _not_negative(duration: Duration, what: str) -> int:
    """In milliseconds."""
    found = millis(duration)
    if found < 0:
        raise ValueError(f"{what} cannot be negative")
    return found


def _of(like: SerdeLike) -> Serde[Any]:
    return serde(like) or BYTES


def key_value_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    caching: bool = False,
    **options: Unpack[StoreOptions],
) -> StoreBuilder:
    """A plain store: key_value_store("seen", key_serde="string", value_serde="long")."""
    keys, values = _of(key_serde), _of(value_serde)
    return StoreBuilder(
        name,
        lambda at: KeyValueStore(name, keys, values, at.log, at.storage.map(), at.topic, at.cache),
        caching=caching,
        **options,
    )


def timestamped_key_value_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    caching: bool = False,
    headers: bool | None = False,
    **options: Unpack[StoreOptions],
) -> StoreBuilder:
    """A store whose values have times: timestamped_key_value_store("last", ...).

    `headers`: they also have headers; `None` leaves it to `dsl.store.format`.
    """
    keys, values = _of(key_serde), _of(value_serde)

    def create(at: StoreContext) -> object:
        kind: Any = TimestampedKeyValueStore
        if at.headers:
            from moldau.streams.stores.with_headers import TimestampedKeyValueStoreWithHeaders

            kind = TimestampedKeyValueStoreWithHeaders
        return kind(name, keys, values, at.log, at.storage.map(), at.cache, at.topic)

    return StoreBuilder(
        name,
        create,
        caching=caching,
        headers=headers,
        **options,
    )


def lru_map(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    size_max: int,
    logging: bool = True,
) -> StoreBuilder:
    """A store in memory of the entries that were used last: lru_map("hot", size_max=1000, ...)."""
    if size_max < 0:
        raise ValueError("maxCacheSize cannot be negative")
    keys, values = _of(key_serde), _of(value_serde)

    def create(at: StoreContext) -> object:
        from moldau.streams.stores.lru import LruStore

        return LruStore(name, keys, values, size_max, at)

    return StoreBuilder(
        name,
        create,
        logging=logging,
        persistent=False,
    )


def versioned_key_value_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    history: Duration,
    **options: Unpack[StoreOptions],
) -> StoreBuilder:
    """A store that knows the past: versioned_key_value_store("rates", history=60_000, ...)."""
    history_ms = _not_negative(history, "historyRetention")
    keys, values = _of(key_serde), _of(value_serde)

    def create(at: StoreContext) -> object:
        from moldau.streams.stores.versioned import VersionedKeyValueStore

        return VersionedKeyValueStore(
            name, keys, values, history_ms, at.log, at.drop, at.storage, at.topic
        )

    return StoreBuilder(
        name,
        create,
        history_ms=history_ms,
        **options,
    )


def window_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    window_size: Duration,
    retention: Duration,
    retain_duplicates: bool = False,
    timestamped: bool = True,
    caching: bool = False,
    headers: bool | None = False,
    **options: Unpack[StoreOptions],
) -> StoreBuilder:
    """A store by key and window: window_store("recent", window_size=1000, retention=5000, ...).

    As in Kafka Streams, a store that retains duplicates is not cached. `headers`: values also have
    headers; `None` leaves it to `dsl.store.format`.
    """
    if headers and not timestamped:
        raise ValueError(f"values of window store {name} have headers only where they have times")
    keys, values = _of(key_serde), _of(value_serde)
    retention_ms = _not_negative(retention, "retentionPeriod")
    size_ms = _not_negative(window_size, "windowSize")
    if size_ms > retention_ms:
        raise ValueError(
            f"The retention period of the window store {name} must be no smaller than its window "
            f"size. Got size=[{iso(size_ms)}], retention=[{iso(retention_ms)}]"
        )

    def create(at: StoreContext) -> object:
        from moldau.streams.stores.windowed import WindowStore, WindowStoreWithHeaders

        return (WindowStoreWithHeaders if at.headers else WindowStore)(
            name,
            keys,
            values,
            retention_ms=retention_ms,
            window_size_ms=size_ms,
            retain_duplicates=retain_duplicates,
            timestamped=timestamped,
            log=at.log,
            drop=at.drop,
            storage=at.storage,
            cache=at.cache,
            topic=at.topic,
        )

    return StoreBuilder(
        name,
        create,
        retention_ms=retention_ms,
        caching=caching and not retain_duplicates,
        headers=headers,
        **options,
    )


def session_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    retention: Duration,
    caching: bool = False,
    headers: bool | None = False,
    **options: Unpack[StoreOptions],
) -> StoreBuilder:
    """A store by key and session: session_store("visits", retention=60_000, ...).

    `headers`: values have headers; `None` leaves it to `dsl.store.format`.
    """
    retention_ms = _not_negative(retention, "retentionPeriod")
    keys, values = _of(key_serde), _of(value_serde)

    def create(at: StoreContext) -> object:
        from moldau.streams.stores.windowed import SessionStore, SessionStoreWithHeaders

        return (SessionStoreWithHeaders if at.headers else SessionStore)(
            name,
            keys,
            values,
            retention_ms=retention_ms,
            log=at.log,
            drop=at.drop,
            storage=at.storage,
            cache=at.cache,
            topic=at.topic,
        )

    return StoreBuilder(
        name,
        create,
        retention_ms=retention_ms,
        caching=caching,
        headers=headers,
        **options,
    )
