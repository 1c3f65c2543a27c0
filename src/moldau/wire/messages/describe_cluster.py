"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeClusterRequest(Message):
    """request, versions 0-2."""

    KIND = "request"
    TYPE = 60
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers",)
    FIELDS = (
        ('include_cluster_authorized_operations', 'bool', 0, 32767, None, None, False, False),
        ('endpoint_type', 'int8', 1, 32767, None, None, 1, False),
        ('include_fenced_brokers', 'bool', 2, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
        self.unknown_tagged_fields = None


class DescribeClusterResponse(Message):
    """response, versions 0-2."""

    KIND = "response"
    TYPE = 60
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 0, 32767, None, None, 0, False),
        ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
        ('endpoint_type', 'int8', 1, 32767, None, None, 1, False),
        ('cluster_id', 'string', 0, 32767, None, None, '', False),
        ('controller_id', 'int32', 0, 32767, None, None, -1, False),
        ('brokers', '[]DescribeClusterBroker', 0, 32767, None, None, (), False),
        ('cluster_authorized_operations', 'int32', 0, 32767, None, None, -2147483648, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = '',
        controller_id: int = -1,
        brokers: list[DescribeClusterResponse.DescribeClusterBroker] = UNSET,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is UNSET else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self.unknown_tagged_fields = None

    class DescribeClusterBroker(Message):
        __slots__ = ("broker_id", "host", "port", "rack", "is_fenced",)
        FIELDS = (
            ('broker_id', 'int32', 0, 32767, None, None, 0, False),
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'int32', 0, 32767, None, None, 0, False),
            ('rack', 'string', 0, 32767, (0, 32767), None, None, False),
            ('is_fenced', 'bool', 2, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            broker_id: int = 0,
            host: str = '',
            port: int = 0,
            rack: str | None = None,
            is_fenced: bool = False,
        ) -> None:
            self.broker_id = broker_id
            self.host = host
            self.port = port
            self.rack = rack
            self.is_fenced = is_fenced
            self.unknown_tagged_fields = None
