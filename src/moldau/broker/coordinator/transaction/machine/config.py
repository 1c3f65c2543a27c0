"""The transaction coordinator's own section of the broker configuration."""

from __future__ import annotations

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.config.section import Section


class TransactionConfig(Section, keys=BROKER_KEYS):
    """Timeouts of transactions and the loading of their state."""

    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_load_buffer_size: int
    transaction_two_phase_commit_enable: bool
    request_timeout_ms: int
