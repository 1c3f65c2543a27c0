"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class StreamsGroupDescribeRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 89
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("group_ids", "include_authorized_operations",)
    FIELDS = (
        ('group_ids', '[]string', 0, 32767, None, None, (), False),
        ('include_authorized_operations', 'bool', 0, 32767, None, None, False, False),
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = UNSET,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is UNSET else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tagged_fields = None


class StreamsGroupDescribeResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 89
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "groups",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('groups', '[]DescribedGroup', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[StreamsGroupDescribeResponse.DescribedGroup] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self.unknown_tagged_fields = None

    class DescribedGroup(Message):
        __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('error_message', 'string', 0, 32767, (0, 32767), None, None, False),
            ('group_id', 'string', 0, 32767, None, None, '', False),
            ('group_state', 'string', 0, 32767, None, None, '', False),
            ('group_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('assignment_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('topology', 'Topology', 0, 32767, (0, 32767), None, None, False),
            ('members', '[]Member', 0, 32767, None, None, (), False),
            ('authorized_operations', 'int32', 0, 32767, None, None, -2147483648, False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = '',
            group_state: str = '',
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            topology: StreamsGroupDescribeResponse.Topology | None = None,
            members: list[StreamsGroupDescribeResponse.Member] = UNSET,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.group_epoch = group_epoch
            self.assignment_epoch = assignment_epoch
            self.topology = topology
            self.members = [] if members is UNSET else members
            self.authorized_operations = authorized_operations
            self.unknown_tagged_fields = None

    class Topology(Message):
        __slots__ = ("epoch", "subtopologies",)
        FIELDS = (
            ('epoch', 'int32', 0, 32767, None, None, 0, False),
            ('subtopologies', '[]Subtopology', 0, 32767, (0, 32767), None, None, False),
        )

        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None,
        ) -> None:
            self.epoch = epoch
            self.subtopologies = subtopologies
            self.unknown_tagged_fields = None

    class Subtopology(Message):
        __slots__ = ("subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics", "repartition_source_topics",)
        FIELDS = (
            ('subtopology_id', 'string', 0, 32767, None, None, '', False),
            ('source_topics', '[]string', 0, 32767, None, None, (), False),
            ('repartition_sink_topics', '[]string', 0, 32767, None, None, (), False),
            ('state_changelog_topics', '[]TopicInfo', 0, 32767, None, None, (), False),
            ('repartition_source_topics', '[]TopicInfo', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            subtopology_id: str = '',
            source_topics: list[str] = UNSET,
            repartition_sink_topics: list[str] = UNSET,
            state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = UNSET,
            repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = UNSET,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.repartition_sink_topics = [] if repartition_sink_topics is UNSET else repartition_sink_topics
            self.state_changelog_topics = [] if state_changelog_topics is UNSET else state_changelog_topics
            self.repartition_source_topics = [] if repartition_source_topics is UNSET else repartition_source_topics
            self.unknown_tagged_fields = None

    class Member(Message):
        __slots__ = ("member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment", "target_assignment", "is_classic",)
        FIELDS = (
            ('member_id', 'string', 0, 32767, None, None, '', False),
            ('member_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('instance_id', 'string', 0, 32767, (0, 32767), None, None, False),
            ('rack_id', 'string', 0, 32767, (0, 32767), None, None, False),
            ('client_id', 'string', 0, 32767, None, None, '', False),
            ('client_host', 'string', 0, 32767, None, None, '', False),
            ('topology_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('process_id', 'string', 0, 32767, None, None, '', False),
            ('user_endpoint', 'Endpoint', 0, 32767, (0, 32767), None, None, False),
            ('client_tags', '[]KeyValue', 0, 32767, None, None, (), False),
            ('task_offsets', '[]TaskOffset', 0, 32767, None, None, (), False),
            ('task_end_offsets', '[]TaskOffset', 0, 32767, None, None, (), False),
            ('assignment', 'Assignment', 0, 32767, None, None, (), False),
            ('target_assignment', 'Assignment', 0, 32767, None, None, (), False),
            ('is_classic', 'bool', 0, 32767, None, None, False, False),
        )

        def __init__(
            self,
            *,
            member_id: str = '',
            member_epoch: int = 0,
            instance_id: str | None = None,
            rack_id: str | None = None,
            client_id: str = '',
            client_host: str = '',
            topology_epoch: int = 0,
            process_id: str = '',
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None,
            client_tags: list[StreamsGroupDescribeResponse.KeyValue] = UNSET,
            task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = UNSET,
            task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = UNSET,
            assignment: StreamsGroupDescribeResponse.Assignment = UNSET,
            target_assignment: StreamsGroupDescribeResponse.Assignment = UNSET,
            is_classic: bool = False,
        ) -> None:
            self.member_id = member_id
            self.member_epoch = member_epoch
            self.instance_id = instance_id
            self.rack_id = rack_id
            self.client_id = client_id
            self.client_host = client_host
            self.topology_epoch = topology_epoch
            self.process_id = process_id
            self.user_endpoint = user_endpoint
            self.client_tags = [] if client_tags is UNSET else client_tags
            self.task_offsets = [] if task_offsets is UNSET else task_offsets
            self.task_end_offsets = [] if task_end_offsets is UNSET else task_end_offsets
            self.assignment = StreamsGroupDescribeResponse.Assignment() if assignment is UNSET else assignment
            self.target_assignment = StreamsGroupDescribeResponse.Assignment() if target_assignment is UNSET else target_assignment
            self.is_classic = is_classic
            self.unknown_tagged_fields = None

    class Endpoint(Message):
        __slots__ = ("host", "port",)
        FIELDS = (
            ('host', 'string', 0, 32767, None, None, '', False),
            ('port', 'uint16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            host: str = '',
            port: int = 0,
        ) -> None:
            self.host = host
            self.port = port
            self.unknown_tagged_fields = None

    class TaskOffset(Message):
        __slots__ = ("subtopology_id", "partition", "offset",)
        FIELDS = (
            ('subtopology_id', 'string', 0, 32767, None, None, '', False),
            ('partition', 'int32', 0, 32767, None, None, 0, False),
            ('offset', 'int64', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            subtopology_id: str = '',
            partition: int = 0,
            offset: int = 0,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partition = partition
            self.offset = offset
            self.unknown_tagged_fields = None

    class Assignment(Message):
        __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks",)
        FIELDS = (
            ('active_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
            ('standby_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
            ('warmup_tasks', '[]TaskIds', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = UNSET,
            standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = UNSET,
            warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = UNSET,
        ) -> None:
            self.active_tasks = [] if active_tasks is UNSET else active_tasks
            self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
            self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
            self.unknown_tagged_fields = None

    class TaskIds(Message):
        __slots__ = ("subtopology_id", "partitions",)
        FIELDS = (
            ('subtopology_id', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            subtopology_id: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class KeyValue(Message):
        __slots__ = ("key", "value",)
        FIELDS = (
            ('key', 'string', 0, 32767, None, None, '', False),
            ('value', 'string', 0, 32767, None, None, '', False),
        )

        def __init__(
            self,
            *,
            key: str = '',
            value: str = '',
        ) -> None:
            self.key = key
            self.value = value
            self.unknown_tagged_fields = None

    class TopicInfo(Message):
        __slots__ = ("name", "partitions", "replication_factor", "topic_configs",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', 'int32', 0, 32767, None, None, 0, False),
            ('replication_factor', 'int16', 0, 32767, None, None, 0, False),
            ('topic_configs', '[]KeyValue', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is UNSET else topic_configs
            self.unknown_tagged_fields = None
