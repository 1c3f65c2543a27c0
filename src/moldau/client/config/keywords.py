"""The keyword arguments of the clients. Made by tools/generate_settings.py; edit the key tables.

Each is one of Kafka's keys with underscores for dots. Where Kafka has a list of words they are
listed here; numbers may be given as text too, as they come from a file or the environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

__all__ = [
    "AdminKeywords",
    "ConsumerKeywords",
    "ProducerKeywords",
    "ShareConsumerKeywords",
]


class CommonKeywords(TypedDict, total=False):
    bootstrap_servers: str | Sequence[Any]
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    client_id: str
    config_providers: str | Sequence[Any]
    connections_max_idle_ms: int | str
    enable_metrics_push: bool | str
    metadata_max_age_ms: int | str
    metadata_recovery_rebootstrap_trigger_ms: int | str
    metadata_recovery_strategy: Literal["REBOOTSTRAP", "rebootstrap", "NONE", "none"]
    metric_reporters: str | Sequence[Any]
    metrics_num_samples: int | str
    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"]
    metrics_sample_window_ms: int | str
    receive_buffer_bytes: int | str
    reconnect_backoff_max_ms: int | str
    reconnect_backoff_ms: int | str
    request_timeout_ms: int | str
    retry_backoff_max_ms: int | str
    retry_backoff_ms: int | str
    sasl_client_callback_handler_class: Any
    sasl_jaas_config: str | None
    sasl_kerberos_kinit_cmd: str
    sasl_kerberos_min_time_before_relogin: int | str
    sasl_kerberos_service_name: str | None
    sasl_kerberos_ticket_renew_jitter: float | str
    sasl_kerberos_ticket_renew_window_factor: float | str
    sasl_login_callback_handler_class: Any
    sasl_login_class: Any
    sasl_login_connect_timeout_ms: int | str | None
    sasl_login_read_timeout_ms: int | str | None
    sasl_login_refresh_buffer_seconds: int | str
    sasl_login_refresh_min_period_seconds: int | str
    sasl_login_refresh_window_factor: float | str
    sasl_login_refresh_window_jitter: float | str
    sasl_login_retry_backoff_max_ms: int | str
    sasl_login_retry_backoff_ms: int | str
    sasl_mechanism: str
    sasl_oauthbearer_assertion_algorithm: Literal["ES256", "es256", "RS256", "rs256"]
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int | str
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_jti_include: bool | str
    sasl_oauthbearer_assertion_claim_nbf_seconds: int | str
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: str | None
    sasl_oauthbearer_assertion_template_file: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_clock_skew_seconds: int | str
    sasl_oauthbearer_expected_audience: str | Sequence[Any]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_header_urlencode: bool | str
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int | str
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int | str
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int | str
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwt_retriever_class: Any
    sasl_oauthbearer_jwt_validator_class: Any
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_oauthbearer_token_endpoint_url: str | None
    security_protocol: Literal[
        "SASL_SSL",
        "sasl_ssl",
        "PLAINTEXT",
        "plaintext",
        "SSL",
        "ssl",
        "SASL_PLAINTEXT",
        "sasl_plaintext",
    ]
    security_providers: str | None
    send_buffer_bytes: int | str
    socket_connection_setup_timeout_max_ms: int | str
    socket_connection_setup_timeout_ms: int | str
    ssl_cipher_suites: str | Sequence[Any]
    ssl_enabled_protocols: str | Sequence[Any]
    ssl_endpoint_identification_algorithm: str
    ssl_engine_factory_class: Any
    ssl_key_password: str | None
    ssl_keymanager_algorithm: str
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str
    ssl_protocol: str
    ssl_provider: str | None
    ssl_secure_random_implementation: str | None
    ssl_trustmanager_algorithm: str
    ssl_truststore_certificates: str | None
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str


class ProducerKeywords(CommonKeywords, total=False):
    acks: Literal["all", "-1", -1, "0", 0, "1", 1]
    auto_register_schemas: Any
    basic_auth_credentials_source: Any
    basic_auth_user_info: Any
    batch_size: int | str
    bearer_auth_credentials_source: Any
    bearer_auth_token: Any
    buffer_memory: int | str
    compression_gzip_level: int | str
    compression_lz4_level: int | str
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    compression_zstd_level: int | str
    default_list_key_serde_inner: Any
    default_list_key_serde_type: Any
    default_list_value_serde_inner: Any
    default_list_value_serde_type: Any
    delivery_timeout_ms: int | str
    enable_idempotence: bool | str
    encryption_data_key_records_max: Any
    encryption_keys: Any
    encryption_keys_location: Any
    encryption_value_serializer: Any
    http_read_timeout_ms: Any
    interceptor_classes: str | Sequence[Any]
    json_fail_invalid_schema: Any
    key_schema_id_serializer: Any
    key_serializer: Any
    key_serializer_encoding: Any
    key_subject_name_strategy: Any
    latest_cache_size: Any
    latest_cache_ttl_sec: Any
    latest_compatibility_strict: Any
    linger_ms: int | str
    list_key_serializer_inner: Any
    list_key_serializer_type: Any
    list_value_serializer_inner: Any
    list_value_serializer_type: Any
    max_block_ms: int | str
    max_in_flight_requests_per_connection: int | str
    max_request_size: int | str
    max_retries: Any
    max_schemas_per_subject: Any
    metadata_max_idle_ms: int | str
    normalize_schemas: Any
    partitioner_adaptive_partitioning_enable: bool | str
    partitioner_availability_timeout_ms: int | str
    partitioner_class: Any
    partitioner_ignore_keys: bool | str
    reference_subject_name_strategy: Any
    retries: int | str
    rule_actions_dlq_param_topic: Any
    rule_executors__default__param_secret: Any
    schema_registry_ssl_cipher_suites: Any
    schema_registry_ssl_enabled_protocols: Any
    schema_registry_ssl_endpoint_identification_algorithm: Any
    schema_registry_ssl_engine_factory_class: Any
    schema_registry_ssl_key_password: Any
    schema_registry_ssl_keymanager_algorithm: Any
    schema_registry_ssl_keystore_certificate_chain: Any
    schema_registry_ssl_keystore_key: Any
    schema_registry_ssl_keystore_location: Any
    schema_registry_ssl_keystore_password: Any
    schema_registry_ssl_keystore_type: Any
    schema_registry_ssl_protocol: Any
    schema_registry_ssl_provider: Any
    schema_registry_ssl_secure_random_implementation: Any
    schema_registry_ssl_trustmanager_algorithm: Any
    schema_registry_ssl_truststore_certificates: Any
    schema_registry_ssl_truststore_location: Any
    schema_registry_ssl_truststore_password: Any
    schema_registry_ssl_truststore_type: Any
    schema_registry_url: Any
    serializer_encoding: Any
    subject_name_strategy: Any
    subject_name_strategy_fallback_type: Any
    subject_name_strategy_kafka_cluster_id: Any
    transaction_timeout_ms: int | str
    transaction_two_phase_commit_enable: bool | str
    transactional_id: str | None
    use_latest_version: Any
    use_schema_id: Any
    validation_rules_execution: Any
    validation_rules_fail_fast: Any
    value_schema_id_serializer: Any
    value_serializer: Any
    value_serializer_encoding: Any
    value_subject_name_strategy: Any


class ShareConsumerKeywords(CommonKeywords, total=False):
    allow_auto_create_topics: bool | str
    auto_commit_interval_ms: int | str
    auto_register_schemas: Any
    basic_auth_credentials_source: Any
    basic_auth_user_info: Any
    bearer_auth_credentials_source: Any
    bearer_auth_token: Any
    check_crcs: bool | str
    client_rack: str
    default_api_timeout_ms: int | str
    default_list_key_serde_inner: Any
    default_list_key_serde_type: Any
    default_list_value_serde_inner: Any
    default_list_value_serde_type: Any
    deserializer_encoding: Any
    encryption_keys: Any
    encryption_keys_location: Any
    encryption_value_deserializer: Any
    exclude_internal_topics: bool | str
    fetch_max_bytes: int | str
    fetch_max_wait_ms: int | str
    fetch_min_bytes: int | str
    group_id: str | None
    http_read_timeout_ms: Any
    json_fail_invalid_schema: Any
    key_deserializer: Any
    key_deserializer_encoding: Any
    key_schema_id_serializer: Any
    key_subject_name_strategy: Any
    latest_cache_size: Any
    latest_cache_ttl_sec: Any
    latest_compatibility_strict: Any
    list_key_deserializer_inner: Any
    list_key_deserializer_type: Any
    list_value_deserializer_inner: Any
    list_value_deserializer_type: Any
    max_partition_fetch_bytes: int | str
    max_poll_interval_ms: int | str
    max_poll_records: int | str
    max_retries: Any
    max_schemas_per_subject: Any
    normalize_schemas: Any
    reference_subject_name_strategy: Any
    rule_actions_dlq_param_topic: Any
    rule_executors__default__param_secret: Any
    schema_registry_ssl_cipher_suites: Any
    schema_registry_ssl_enabled_protocols: Any
    schema_registry_ssl_endpoint_identification_algorithm: Any
    schema_registry_ssl_engine_factory_class: Any
    schema_registry_ssl_key_password: Any
    schema_registry_ssl_keymanager_algorithm: Any
    schema_registry_ssl_keystore_certificate_chain: Any
    schema_registry_ssl_keystore_key: Any
    schema_registry_ssl_keystore_location: Any
    schema_registry_ssl_keystore_password: Any
    schema_registry_ssl_keystore_type: Any
    schema_registry_ssl_protocol: Any
    schema_registry_ssl_provider: Any
    schema_registry_ssl_secure_random_implementation: Any
    schema_registry_ssl_trustmanager_algorithm: Any
    schema_registry_ssl_truststore_certificates: Any
    schema_registry_ssl_truststore_location: Any
    schema_registry_ssl_truststore_password: Any
    schema_registry_ssl_truststore_type: Any
    schema_registry_url: Any
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    share_acquire_mode: Literal[
        "BATCH_OPTIMIZED",
        "batch_optimized",
        "RECORD_LIMIT",
        "record_limit",
    ]
    subject_name_strategy: Any
    subject_name_strategy_fallback_type: Any
    subject_name_strategy_kafka_cluster_id: Any
    use_latest_version: Any
    use_schema_id: Any
    validation_rules_execution: Any
    validation_rules_fail_fast: Any
    value_deserializer: Any
    value_deserializer_encoding: Any
    value_schema_id_serializer: Any
    value_subject_name_strategy: Any


class ConsumerKeywords(ShareConsumerKeywords, total=False):
    auto_offset_reset: str
    enable_auto_commit: bool | str
    group_instance_id: str | None
    group_protocol: Literal["CONSUMER", "consumer", "CLASSIC", "classic"]
    group_remote_assignor: str | None
    heartbeat_interval_ms: int | str
    interceptor_classes: str | Sequence[Any]
    isolation_level: Literal["read_committed", "read_uncommitted"]
    partition_assignment_strategy: str | Sequence[Any]
    session_timeout_ms: int | str


class AdminKeywords(CommonKeywords, total=False):
    bootstrap_controllers: str | Sequence[Any]
    default_api_timeout_ms: int | str
    retries: int | str
