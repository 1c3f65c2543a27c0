"""Why a rule stopped a record."""

from __future__ import annotations

from moldau.client.errors import SerializationError
from moldau.serde.rules.machine.rule_sets import Rule

__all__ = ["RuleConditionError", "RuleError"]


class RuleError(SerializationError):
    """A rule failed, or cannot be run."""


class RuleConditionError(RuleError):
    """A condition was false."""

    def __init__(self, rule: Rule) -> None:
        if rule.doc:
            reason = rule.doc
        elif rule.expr:
            reason = f"Rule expr failed: {rule.expr}"
        else:
            reason = f"Rule failed: {rule.name}"
        super().__init__(reason)
