"""Creating, growing and deleting topics.

Each topic of a request succeeds or fails for itself; the records of all that succeed are one batch.
Nothing is created for a request with validate_only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from moldau.broker.machine.topics import METADATA_TOPIC, check_topic_name
from moldau.broker.metadata.machine.configs import topic_config_records
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.model import Partition, Topic
from moldau.broker.metadata.machine.placement import default_directories, place_replicas
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.metadata.machine.writer import partition_record
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    RemoveTopicRecord,
    TopicRecord,
)
from moldau.wire.uuids import ZERO_UUID, random_uuid

PARTITIONS_PER_REQUEST_MAX = 10_000


def has_collision_chars(name: str) -> bool:
    """Metric names turn '.' into '_', so topics must not differ by that alone."""
    return "." in name or "_" in name


def unify_collision_chars(name: str) -> str:
    return name.replace(".", "_")


def create_topics(
    controller: ControllerView,
    request: CreateTopicsRequest,
    *,
    describable: Callable[[str], bool] = lambda name: True,
    mutate: Callable[[int], None] = lambda count: None,
) -> Decision[CreateTopicsResponse]:
    """`describable` decides which topics' configuration the response may contain; `mutate` counts
    new partitions, and raises ApiError if there are too many (KIP-599)."""
    too_many = _excessive(
        len(topic.assignments)
        or _or_default(topic.num_partitions, controller.config.num_partitions)
        for topic in request.topics
    )
    counts = Counter(topic.name for topic in request.topics)
    records: list[Any] = []
    results: list[CreateTopicsResponse.CreatableTopicResult] = []
    answered: set[str] = set()
    for topic in request.topics:
        if topic.name in answered:
            continue
        answered.add(topic.name)
        try:
            if too_many is not None:
                raise too_many
            if counts[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _check_new_name(controller, topic.name)
            created, result = _create_topic(controller, topic, describable(topic.name), mutate)
        except ApiError as error:
            result = CreateTopicsResponse.CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message or None
            )
        else:
            records += created
        results.append(result)
    response = CreateTopicsResponse(topics=results)
    return Decision(() if request.validate_only else tuple(records), response)


def _excessive(counts: Iterable[int]) -> ApiError | None:
    """The error of every topic in a request with too many partitions in total."""
    if sum(count for count in counts if count > 0) <= PARTITIONS_PER_REQUEST_MAX:
        return None
    return ApiError(
        ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
    )


def _or_default(value: int, default: int) -> int:
    return default if value == -1 else value


def _check_new_name(controller: ControllerView, name: str) -> None:
    if name == METADATA_TOPIC:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {METADATA_TOPIC} is prohibited.",
        )
    check_topic_name(name)
    if name in controller.image.topics_by_name:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = controller.colliding_topic(name)
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def _create_topic(
    controller: ControllerView,
    topic: CreateTopicsRequest.CreatableTopic,
    describable: bool,
    mutate: Callable[[int], None],
) -> tuple[list[Any], CreateTopicsResponse.CreatableTopicResult]:
    without_value = [config.name for config in topic.configs if config.value is None]
    if without_value:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: " + ",".join(without_value),
        )
    configs = {config.name: config.value or "" for config in topic.configs}
    config_records = topic_config_records(controller, topic.name, configs)
    partitions = _new_partitions(controller, topic)
    mutate(len(partitions))
    topic_id = _new_topic_id(controller)
    version = controller.image.metadata_version
    records: list[Any] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += config_records
    records += [
        partition_record(topic_id, index, partition, version)
        for index, partition in partitions.items()
    ]
    result = _topic_result(controller, topic.name, topic_id, configs, partitions, describable)
    return records, result


def _new_topic_id(controller: ControllerView) -> UUID:
    topic_id = random_uuid(controller.random.randbytes(16))
    invariant(topic_id not in controller.image.topics_by_id, "the random source repeats topic ids")
    return topic_id


def _topic_result(
    controller: ControllerView,
    name: str,
    topic_id: UUID,
    configs: Mapping[str, str],
    partitions: Mapping[int, Partition],
    describable: bool,
) -> CreateTopicsResponse.CreatableTopicResult:
    result = CreateTopicsResponse.CreatableTopicResult(name=name, topic_id=topic_id)
    result.error_message = None
    if not describable:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    image = controller.image
    result.configs = [
        CreateTopicsResponse.CreatableTopicConfigs(
            name=entry.name,
            value=None if entry.is_sensitive else entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in controller.rules.effective_topic(
            configs, image.cluster_configs(), image.broker_configs(controller.config.node_id)
        )
    ]
    result.num_partitions = len(partitions)
    result.replication_factor = len(partitions[0].replicas)
    return result


def _new_partitions(
    controller: ControllerView, topic: CreateTopicsRequest.CreatableTopic
) -> dict[int, Partition]:
    if topic.assignments:
        return _assigned_partitions(controller, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    return _placed_partitions(
        controller,
        first_index=0,
        count=_or_default(topic.num_partitions, controller.config.num_partitions),
        replication_factor=_or_default(
            topic.replication_factor, controller.config.default_replication_factor
        ),
    )


def _placed_partitions(
    controller: ControllerView, *, first_index: int, count: int, replication_factor: int
) -> dict[int, Partition]:
    prefix = f"Unable to replicate the partition {replication_factor} time(s): "
    try:
        placed = place_replicas(
            controller.image.brokers.values(),
            partition_count=count,
            replication_factor=replication_factor,
            random=controller.random,
        )
    except ApiError as error:
        raise ApiError(error.code, prefix + error.message) from None
    partitions = {}
    for index, replicas in enumerate(placed, first_index):
        partition = _fresh_partition(controller, replicas)
        if partition is None:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                prefix + "All brokers are currently fenced or in controlled shutdown.",
            )
        partitions[index] = partition
    return partitions


def _assigned_partitions(
    controller: ControllerView, topic: CreateTopicsRequest.CreatableTopic
) -> dict[int, Partition]:
    if topic.replication_factor != -1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to"
            " -1.",
        )
    if topic.num_partitions != -1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    partitions: dict[int, Partition] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        if assignment.partition_index in partitions:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Found multiple manual partition assignments for partition"
                f" {assignment.partition_index}",
            )
        partitions[assignment.partition_index] = _assigned_partition(
            controller, assignment.partition_index, assignment.broker_ids, factor
        )
        factor = len(assignment.broker_ids)
    if partitions.keys() != set(range(len(partitions))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return dict(sorted(partitions.items()))


def _assigned_partition(
    controller: ControllerView, index: int, replicas: Sequence[int], factor: int | None
) -> Partition:
    check_manual_assignment(controller, replicas, factor)
    partition = _fresh_partition(controller, tuple(replicas))
    if partition is None:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are"
            " fenced or in controlled shutdown.",
        )
    return partition


def check_manual_assignment(
    controller: ControllerView, replicas: Sequence[int], factor: int | None
) -> None:
    prefix = "The manual partition assignment includes "
    problem = None
    if not replicas:
        problem = "an empty replica list."
    else:
        ordered = sorted(replicas)
        for position, broker_id in enumerate(ordered):
            if broker_id not in controller.image.brokers:
                problem = f"broker {broker_id}, but no such broker is registered."
                break
            if position and ordered[position - 1] == broker_id:
                problem = f"the broker {broker_id} more than once."
                break
    if problem is None and factor is not None and len(replicas) != factor:
        problem = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with"
            f" previous partitions, which have {factor} replica(s)."
        )
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, prefix + problem)


def _fresh_partition(controller: ControllerView, replicas: tuple[int, ...]) -> Partition | None:
    """A new partition led by its first live replica, None when no replica lives."""
    brokers = controller.image.brokers
    isr = tuple(replica for replica in replicas if brokers[replica].active)
    if not isr:
        return None
    return Partition(
        replicas=replicas,
        directories=default_directories(replicas, brokers),
        isr=isr,
        leader=isr[0],
    )


def create_partitions(
    controller: ControllerView,
    request: CreatePartitionsRequest,
    *,
    mutate: Callable[[int], None] = lambda count: None,
) -> Decision[CreatePartitionsResponse]:
    """`mutate` as in `create_topics`."""
    too_many = _excessive(topic.count for topic in request.topics)
    counts = Counter(topic.name for topic in request.topics)
    records: list[Any] = []
    results: dict[str, CreatePartitionsResponse.CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        result = CreatePartitionsResponse.CreatePartitionsTopicResult(name=topic.name)
        try:
            if too_many is not None:
                raise too_many
            if counts[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _grow_topic(controller, topic, mutate)
        except ApiError as error:
            result.error_code = error.code
            result.error_message = error.message or None
        results[topic.name] = result
    response = CreatePartitionsResponse(results=list(results.values()))
    return Decision(() if request.validate_only else tuple(records), response)


def _grow_topic(
    controller: ControllerView,
    request: CreatePartitionsRequest.CreatePartitionsTopic,
    mutate: Callable[[int], None],
) -> list[Any]:
    topic = controller.image.topics_by_name.get(request.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    current = len(topic.partitions)
    if request.count == current:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if request.count < current:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {request.name} currently has {current} partition(s); {request.count} would"
            " not be an increase.",
        )
    additional = request.count - current
    if request.assignments is not None and len(request.assignments) != additional:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only"
            f" {len(request.assignments)} assignment(s) were specified.",
        )
    mutate(additional)
    factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        partitions = _placed_partitions(
            controller, first_index=current, count=additional, replication_factor=factor
        )
    else:
        partitions = {
            index: _assigned_partition(controller, index, assignment.broker_ids, factor)
            for index, assignment in enumerate(request.assignments, current)
        }
    version = controller.image.metadata_version
    return [
        partition_record(topic.id, index, partition, version)
        for index, partition in partitions.items()
    ]


def delete_topics(
    controller: ControllerView,
    request: DeleteTopicsRequest,
    *,
    api_version: int = 6,
    mutate: Callable[[int], None] = lambda count: None,
) -> Decision[DeleteTopicsResponse]:
    """`mutate` as in `create_topics`, with the partitions that are deleted."""
    disabled = None if controller.config.delete_topic_enable else _deletion_disabled(api_version)
    wanted: list[tuple[str | None, UUID]] = [(name, ZERO_UUID) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    counts = Counter(wanted)
    # A topic named in both ways is not deleted: the request contradicts itself.
    by_id = {topic_id for name, topic_id in wanted if name is None}
    by_name = {
        topic.id
        for name, _ in wanted
        if name is not None and (topic := controller.image.topics_by_name.get(name)) is not None
    }
    records: list[Any] = []
    responses: list[DeleteTopicsResponse.DeletableTopicResult] = []
    for name, topic_id in dict.fromkeys(wanted):
        result = DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            if disabled is not None:
                raise disabled
            topic = _topic_to_delete(controller, name, topic_id, counts[name, topic_id] > 1)
            result.topic_id = topic.id
            result.name = topic.name
            if topic.id in by_id and topic.id in by_name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "The provided topic name maps to an ID that was already supplied.",
                )
            mutate(len(topic.partitions))
        except ApiError as error:
            result.error_code = error.code
            result.error_message = error.message or None
        else:
            records.append(RemoveTopicRecord(topic_id=topic.id))
        responses.append(result)
    return Decision(tuple(records), DeleteTopicsResponse(responses=responses))


def _deletion_disabled(api_version: int) -> ApiError:
    if api_version < 3:
        return ApiError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
    return ApiError(ErrorCode.TOPIC_DELETION_DISABLED)


def _topic_to_delete(
    controller: ControllerView, name: str | None, topic_id: UUID, duplicate: bool
) -> Topic:
    if name is None:
        if topic_id == ZERO_UUID:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if duplicate:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
        topic = controller.image.topics_by_id.get(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    if topic_id != ZERO_UUID:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if duplicate:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    topic = controller.image.topics_by_name.get(name)
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    return topic
