"""Stores for processors, by hand.

`persistent` keeps a store on disk or in memory; `None` leaves it to `default.dsl.store`.
"""

from __future__ import annotations

from moldau.streams.serdes import BYTES, Serde, SerdeLike, serde
from moldau.streams.stores.base import StoreBuilder
from moldau.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from moldau.streams.stores.versioned import VersionedKeyValueStore
from moldau.streams.stores.windowed import SessionStore, WindowStore
from moldau.streams.windows import Duration, millis


def _of(like: SerdeLike) -> Serde[object]:
    return serde(like) or BYTES  # type: ignore[return-value]


def key_value_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    logging: bool = True,
    persistent: bool | None = None,
) -> StoreBuilder:
    """A plain store: key_value_store("seen", key_serde="string", value_serde="long")."""
    keys, values = _of(key_serde), _of(value_serde)
    return StoreBuilder(
        name,
        lambda at: KeyValueStore(name, keys, values, at.log, at.storage.map(), at.topic),
        logging=logging,
        persistent=persistent,
    )


def timestamped_key_value_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    logging: bool = True,
    persistent: bool | None = None,
) -> StoreBuilder:
    """A store whose values have times: timestamped_key_value_store("last", ...)."""
    keys, values = _of(key_serde), _of(value_serde)
    return StoreBuilder(
        name,
        lambda at: TimestampedKeyValueStore(
            name, keys, values, at.log, at.storage.map(), at.cache, at.topic
        ),
        logging=logging,
        persistent=persistent,
    )


def versioned_key_value_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    history: Duration,
    logging: bool = True,
    persistent: bool | None = None,
) -> StoreBuilder:
    """A store that knows the past: versioned_key_value_store("rates", history=60_000, ...)."""
    keys, values, history_ms = _of(key_serde), _of(value_serde), millis(history)
    return StoreBuilder(
        name,
        lambda at: VersionedKeyValueStore(
            name, keys, values, history_ms, at.log, at.drop, at.storage, at.topic
        ),
        logging=logging,
        persistent=persistent,
        history_ms=history_ms,
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
    logging: bool = True,
    persistent: bool | None = None,
) -> StoreBuilder:
    """A store by key and window: window_store("recent", window_size=1000, retention=5000, ...)."""
    keys, values = _of(key_serde), _of(value_serde)
    return StoreBuilder(
        name,
        lambda at: WindowStore(
            name,
            keys,
            values,
            retention_ms=millis(retention),
            window_size_ms=millis(window_size),
            retain_duplicates=retain_duplicates,
            timestamped=timestamped,
            log=at.log,
            drop=at.drop,
            storage=at.storage,
            cache=at.cache,
            topic=at.topic,
        ),
        logging=logging,
        retention_ms=millis(retention),
        persistent=persistent,
    )


def session_store(
    name: str,
    *,
    key_serde: SerdeLike,
    value_serde: SerdeLike,
    retention: Duration,
    logging: bool = True,
    persistent: bool | None = None,
) -> StoreBuilder:
    """A store by key and session: session_store("visits", retention=60_000, ...)."""
    keys, values = _of(key_serde), _of(value_serde)
    return StoreBuilder(
        name,
        lambda at: SessionStore(
            name,
            keys,
            values,
            retention_ms=millis(retention),
            log=at.log,
            drop=at.drop,
            storage=at.storage,
            cache=at.cache,
            topic=at.topic,
        ),
        logging=logging,
        retention_ms=millis(retention),
        persistent=persistent,
    )
