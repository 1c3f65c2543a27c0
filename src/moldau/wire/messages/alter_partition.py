"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from uuid import UUID

from moldau.wire.message import UNSET, Message
from moldau.wire.uuids import ZERO_UUID


class AlterPartitionRequest(Message):
    """request, versions 2-3."""

    KIND = "request"
    TYPE = 56
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "topics",)
    FIELDS = (
        ('broker_id', 'int32', 0, 32767, None, None, 0, False),
        ('broker_epoch', 'int64', 0, 32767, None, None, -1, False),
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequest.TopicData] = UNSET,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 2, 32767, None, None, (), True),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[AlterPartitionRequest.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state", "partition_epoch",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('new_isr', '[]int32', 0, 2, None, None, (), False),
            ('new_isr_with_epochs', '[]BrokerState', 3, 32767, None, None, (), False),
            ('leader_recovery_state', 'int8', 1, 32767, None, None, 0, False),
            ('partition_epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = 0,
            new_isr: list[int] = UNSET,
            new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = UNSET,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.leader_epoch = leader_epoch
            self.new_isr = [] if new_isr is UNSET else new_isr
            self.new_isr_with_epochs = [] if new_isr_with_epochs is UNSET else new_isr_with_epochs
            self.leader_recovery_state = leader_recovery_state
            self.partition_epoch = partition_epoch
            self.unknown_tagged_fields = None

    class BrokerState(Message):
        __slots__ = ("broker_id", "broker_epoch",)
        FIELDS = (
            ('broker_id', 'int32', 3, 32767, None, None, 0, False),
            ('broker_epoch', 'int64', 3, 32767, None, None, -1, False),
        )

        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
        ) -> None:
            self.broker_id = broker_id
            self.broker_epoch = broker_epoch
            self.unknown_tagged_fields = None


class AlterPartitionResponse(Message):
    """response, versions 2-3."""

    KIND = "response"
    TYPE = 56
    LOWEST_VERSION = 2
    HIGHEST_VERSION = 3
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "topics",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('topics', '[]TopicData', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponse.TopicData] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic_id", "partitions",)
        FIELDS = (
            ('topic_id', 'uuid', 2, 32767, None, None, (), True),
            ('partitions', '[]PartitionData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic_id: UUID = ZERO_UUID,
            partitions: list[AlterPartitionResponse.PartitionData] = UNSET,
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class PartitionData(Message):
        __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('leader_id', 'int32', 0, 32767, None, None, 0, False),
            ('leader_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('isr', '[]int32', 0, 32767, None, None, (), False),
            ('leader_recovery_state', 'int8', 1, 32767, None, None, 0, True),
            ('partition_epoch', 'int32', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            isr: list[int] = UNSET,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.isr = [] if isr is UNSET else isr
            self.leader_recovery_state = leader_recovery_state
            self.partition_epoch = partition_epoch
            self.unknown_tagged_fields = None
