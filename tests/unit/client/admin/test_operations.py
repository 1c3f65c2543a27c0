"""The admin clients have every operation of Kafka's."""

from __future__ import annotations

import inspect

import pytest

from moldau.client.admin import AsyncAdmin
from moldau.client.admin.base import AdminBase

# Names of other clients are there only to be refused with a hint.
OPERATIONS = sorted(
    name for name in dir(AsyncAdmin) if not name.startswith("_") and hasattr(AsyncAdmin, name)
)


def test_every_operation_of_kafka_is_there() -> None:
    # The methods of org.apache.kafka.clients.admin.Admin 4.3 that are operations.
    kafka = [
        "create_topics",
        "delete_topics",
        "list_topics",
        "describe_topics",
        "describe_cluster",
        "describe_acls",
        "create_acls",
        "delete_acls",
        "describe_configs",
        "incremental_alter_configs",
        "alter_replica_log_dirs",
        "describe_log_dirs",
        "describe_replica_log_dirs",
        "create_partitions",
        "delete_records",
        "create_delegation_token",
        "renew_delegation_token",
        "expire_delegation_token",
        "describe_delegation_token",
        "describe_consumer_groups",
        "list_consumer_groups",
        "list_consumer_group_offsets",
        "list_streams_group_offsets",
        "delete_consumer_groups",
        "delete_streams_groups",
        "delete_consumer_group_offsets",
        "delete_streams_group_offsets",
        "list_groups",
        "elect_leaders",
        "alter_partition_reassignments",
        "list_partition_reassignments",
        "remove_members_from_consumer_group",
        "alter_consumer_group_offsets",
        "alter_streams_group_offsets",
        "list_offsets",
        "describe_client_quotas",
        "alter_client_quotas",
        "describe_user_scram_credentials",
        "alter_user_scram_credentials",
        "describe_features",
        "update_features",
        "describe_metadata_quorum",
        "unregister_broker",
        "describe_producers",
        "describe_transactions",
        "abort_transaction",
        "list_transactions",
        "fence_producers",
        "list_config_resources",
        "list_client_metrics_resources",
        "client_instance_id",
        "add_raft_voter",
        "remove_raft_voter",
        "describe_share_groups",
        "alter_share_group_offsets",
        "list_share_group_offsets",
        "delete_share_group_offsets",
        "delete_share_groups",
        "describe_streams_groups",
        "describe_classic_groups",
        "metrics",
        "force_terminate_transaction",
        "register_metric_for_subscription",
        "unregister_metric_from_subscription",
        "close",
    ]
    assert set(kafka) <= set(OPERATIONS)


@pytest.mark.parametrize("area", AdminBase.__subclasses__(), ids=lambda area: area.__name__)
def test_every_operation_of_an_area_is_in_the_client(area: type[AdminBase]) -> None:
    if not area.__module__.startswith("moldau.client.admin."):
        # An area of another package, for its own use.
        return
    for name, operation in vars(area).items():
        if not name.startswith("_"):
            assert inspect.unwrap(getattr(AsyncAdmin, name)) is operation
