"""Schemas of API v3 for the OpenAPI document, from a table: one line per resource."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["V3_SCHEMAS"]

#: name: fields; `?` after a type for null, `*` after a name for a required field of a request,
#: `@` for a relationship.
_RESOURCES: Final = """
ClusterData: cluster_id controller@ acls@ brokers@ broker_configs@ consumer_groups@ topics@
  partition_reassignments@
BrokerData: cluster_id broker_id:int host:string? port:int? rack:string? configs@
  partition_replicas@
TopicData: cluster_id topic_name is_internal:bool replication_factor:int partitions_count:int
  partitions@ configs@ partition_reassignments@ authorized_operations:array
PartitionData: cluster_id topic_name partition_id:int leader@ replicas@ reassignment@
PartitionWithOffsetsData: cluster_id topic_name partition_id:int earliest_offset:long
  latest_offset:long
ReplicaData: cluster_id topic_name partition_id:int broker_id:int is_leader:bool is_in_sync:bool
  broker@
ReassignmentData: cluster_id topic_name partition_id:int adding_replicas:array
  removing_replicas:array replicas@
TopicConfigData: cluster_id topic_name name value:string? is_default:bool is_read_only:bool
  is_sensitive:bool source synonyms:array
BrokerConfigData: cluster_id broker_id:int name value:string? is_default:bool is_read_only:bool
  is_sensitive:bool source synonyms:array
ClusterConfigData: cluster_id config_type name value:string? is_default:bool is_read_only:bool
  is_sensitive:bool source synonyms:array
ConsumerGroupData: cluster_id consumer_group_id is_simple:bool partition_assignor state type
  is_mixed_consumer_group:bool coordinator@ consumers@ lag_summary@
ConsumerData: cluster_id consumer_group_id consumer_id instance_id:string? client_id assignments@
ConsumerAssignmentData: cluster_id consumer_group_id consumer_id topic_name partition_id:int
  partition@ lag@
ConsumerLagData: cluster_id consumer_group_id topic_name partition_id:int current_offset:long
  log_end_offset:long lag:long consumer_id instance_id:string? client_id
ConsumerGroupLagSummaryData: cluster_id consumer_group_id max_lag_consumer_id
  max_lag_instance_id:string? max_lag_client_id max_lag_topic_name max_lag_partition_id:int
  max_lag:long total_lag:long max_lag_consumer@ max_lag_partition@
AclData: cluster_id resource_type resource_name pattern_type principal host operation permission
"""

_TYPES: Final[dict[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "array": {"type": "array", "items": {}},
}
_RELATED: Final = {
    "type": "object",
    "required": ["related"],
    "properties": {"related": {"type": "string"}},
}
_LIST_METADATA: Final = {
    "type": "object",
    "required": ["self"],
    "properties": {"self": {"type": "string"}, "next": {"type": "string", "nullable": True}},
}
_METADATA: Final = {
    "type": "object",
    "required": ["self"],
    "properties": {
        "self": {"type": "string"},
        "resource_name": {"type": "string", "nullable": True},
    },
}


def _resources() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in _RESOURCES.replace("\n  ", " ").strip().splitlines():
        name, _, fields = line.partition(": ")
        properties: dict[str, Any] = {"kind": {"type": "string"}, "metadata": _METADATA}
        for each in fields.split():
            properties.update(_field(each))
        found[name] = {
            "type": "object",
            "required": ["kind", "metadata", "cluster_id"],
            "properties": properties,
        }
        found[f"{name}List"] = {
            "type": "object",
            "required": ["kind", "metadata", "data"],
            "properties": {
                "kind": {"type": "string"},
                "metadata": _LIST_METADATA,
                "data": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
            },
        }
    return found


def _field(text: str) -> dict[str, Any]:
    if text.endswith("@"):
        return {text[:-1]: _RELATED}
    name, _, kind = text.partition(":")
    schema = dict(_TYPES[kind.rstrip("?") or "string"])
    if kind.endswith("?"):
        schema["nullable"] = True
    return {name: schema}


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        found["required"] = required.split()
    return found


_TEXT: Final = _TYPES["string"]
_NULLABLE_TEXT: Final = {"type": "string", "nullable": True}
_NULLABLE_INT: Final = {"type": "integer", "format": "int32", "nullable": True}
_MOMENT: Final = {"type": "string", "format": "date-time", "nullable": True}
_CHANGE: Final[dict[str, Any]] = {
    "name": _TEXT,
    "value": _NULLABLE_TEXT,
    "operation": {"type": "string", "enum": ["SET", "DELETE"], "nullable": True},
}
_DATA: Final = _object(
    type={
        "type": "string",
        "enum": ["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"],
    },
    subject=_NULLABLE_TEXT,
    subject_name_strategy=_NULLABLE_TEXT,
    schema_id=_NULLABLE_INT,
    schema_version=_NULLABLE_INT,
    schema=_NULLABLE_TEXT,
    data={"nullable": True},
) | {"nullable": True}
_HEADER: Final = _object("name", name=_TEXT, value=_NULLABLE_TEXT | {"format": "byte"})
_RECORD: Final[dict[str, Any]] = {
    "partition_id": _NULLABLE_INT,
    "headers": {"type": "array", "items": _HEADER},
    "key": _DATA,
    "value": _DATA,
    "timestamp": _MOMENT,
}
_ENTRY_ID: Final = {"type": "string", "minLength": 1, "maxLength": 80}
_STORED: Final[dict[str, Any]] = {
    "cluster_id": _TEXT,
    "topic_name": _TEXT,
    "partition_id": _TYPES["int"],
    "offset": _TYPES["long"],
    "timestamp": _MOMENT,
    "key": {"type": "object", "nullable": True},
    "value": {"type": "object", "nullable": True},
}
_ACL: Final = "resource_type resource_name pattern_type principal host operation permission"
_FAILURE: Final[dict[str, Any]] = {"error_code": _TYPES["int"], "message": _TEXT}

V3_SCHEMAS: Final[dict[str, Any]] = {
    **_resources(),
    "Empty": {},
    "CreateTopicRequestData": _object(
        "topic_name",
        topic_name=_TEXT,
        partitions_count=_TYPES["int"],
        replication_factor=_TYPES["int"],
        replicas_assignments={
            "type": "object",
            "additionalProperties": {"type": "array", "items": _TYPES["int"]},
        },
        configs={"type": "array", "items": _object("name", name=_TEXT, value=_NULLABLE_TEXT)},
        validate_only=_TYPES["bool"],
    ),
    "UpdatePartitionCountRequestData": _object("partitions_count", partitions_count=_TYPES["int"]),
    "UpdateConfigRequestData": _object(value=_NULLABLE_TEXT),
    "AlterConfigBatchRequestData": _object(
        "data",
        data={"type": "array", "items": _object("name", **_CHANGE)},
        validate_only=_TYPES["bool"],
    ),
    "AlterTopicsConfigBatchRequestData": _object(
        "data",
        data={"type": "array", "items": _object("topic_name name", topic_name=_TEXT, **_CHANGE)},
        validate_only=_TYPES["bool"],
    ),
    "CreateAclRequestData": _object(_ACL, **dict.fromkeys(_ACL.split(), _TEXT)),
    "CreateAclRequestDataList": _object(
        "data",
        data={"type": "array", "items": {"$ref": "#/components/schemas/CreateAclRequestData"}},
    ),
    "DeleteAclsResponse": _object(
        "data", data={"type": "array", "items": {"$ref": "#/components/schemas/AclData"}}
    ),
    "ProduceRequest": _object(**_RECORD),
    "ProduceResponse": _object("error_code", **_FAILURE, **_STORED),
    "ProduceBatchRequest": _object(
        "entries", entries={"type": "array", "items": _object("id", id=_ENTRY_ID, **_RECORD)}
    ),
    "ProduceBatchResponse": _object(
        successes={"type": "array", "items": _object("id", id=_ENTRY_ID, **_STORED)},
        failures={"type": "array", "items": _object("id error_code", id=_ENTRY_ID, **_FAILURE)},
    ),
    "RecordList": _object(
        "kind metadata data",
        kind=_TEXT,
        metadata=_LIST_METADATA,
        data={
            "type": "array",
            "items": _object(
                "partition_id offset",
                kind=_TEXT,
                cluster_id=_TEXT,
                topic_name=_TEXT,
                partition_id=_TYPES["int"],
                offset=_TYPES["long"],
                timestamp=_MOMENT,
                headers={"type": "array", "items": _HEADER},
                key={"type": "object", "nullable": True},
                value={"type": "object", "nullable": True},
            ),
        },
    ),
}
