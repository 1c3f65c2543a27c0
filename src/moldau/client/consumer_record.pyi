from typing import Generic

from moldau.client.type_parameters import K, V

__all__ = ["ConsumerRecord"]

class ConsumerRecord(Generic[K, V]):
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> K: ...
    @property
    def value(self) -> V: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int | None: ...
    @property
    def serialized_key_size(self) -> int: ...
    @property
    def serialized_value_size(self) -> int: ...
    @property
    def delivery_count(self) -> int | None: ...
    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        timestamp_type: int = 0,
        key: K = ...,
        value: V = ...,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        leader_epoch: int | None = None,
        serialized_key_size: int = -1,
        serialized_value_size: int = -1,
        delivery_count: int | None = None,
    ) -> None: ...
