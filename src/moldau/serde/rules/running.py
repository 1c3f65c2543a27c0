"""RuleRunner: runs the rules of one subject's schema, and what follows when one fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from moldau.client.errors import SerializationError
from moldau.serde.rules.machine.errors import RuleConditionError, RuleError
from moldau.serde.rules.machine.fields import Field, Visit, Walk
from moldau.serde.rules.machine.rule_sets import Mode, Rule, matches

__all__ = ["Executor", "FieldExecutor", "Record", "RuleContext", "RuleRunner", "Tools"]

logger = logging.getLogger(__name__)

RULE_NAME_HEADER: Final = "__rule.name"
Headers = Sequence[tuple[str, bytes | None]] | None


@dataclass(frozen=True, slots=True)
class Record:
    """What a rule's failure is reported with: `original` is the data as it came in."""

    topic: str
    is_key: bool
    headers: Headers
    original: Any


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One rule on one record. `metadata` is the schema's, and `walk` goes over its fields."""

    subject: str
    mode: Mode
    rule: Rule
    rules: tuple[Rule, ...]
    metadata: Mapping[str, Any]
    walk: Walk | None
    record: Record

    def parameter(self, name: str) -> str | None:
        found = self.rule.params.get(name)
        if found is None:
            found = (self.metadata.get("properties") or {}).get(name)
        return None if found is None else str(found)

    def tags(self, field: Field) -> frozenset[str]:
        """Of the schema, and what the metadata gives by patterns."""
        found = set(field.tags)
        for pattern, tags in (self.metadata.get("tags") or {}).items():
            if matches(field.full_name, pattern):
                found.update(tags)
        return frozenset(found)


class Executor(Protocol):
    """Runs rules of one type on whole data."""

    def run(self, context: RuleContext, data: Any) -> Any: ...


class FieldExecutor(Protocol):
    """Runs rules of one type on fields."""

    def visit(self, context: RuleContext) -> Callable[[Field, frozenset[str], Any], Any]: ...


class Tools(Protocol):
    """Executors and actions by type; RuleError for a type that is not known."""

    def executor(self, type: str) -> Executor | FieldExecutor: ...

    def act(self, action: str, context: RuleContext, error: Exception | None) -> None:
        """Beside ERROR and NONE. Raises what ends the record."""
        ...


class RuleRunner:
    """See the module."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        *,
        mode: Mode,
        subject: str,
        metadata: Mapping[str, Any] | None,
        walk: Walk | None,
        tools: Tools,
    ) -> None:
        self._rules = rules
        self._mode: Mode = mode
        self._subject = subject
        self._metadata = metadata or {}
        self._walk = walk
        self._tools = tools

    def run(self, data: Any, record: Record) -> Any:
        """The data after all rules. Raises SerializationError."""
        for index, rule in enumerate(self._rules):
            if _came_from_dead_letters(record.headers, rule):
                continue
            context = RuleContext(
                self._subject, self._mode, rule, self._rules, self._metadata, self._walk, record
            )
            try:
                data = self._run_one(context, index, data)
            except Exception as error:  # A library raises what an expression leads to.
                self._act(context, rule.action(self._mode, failed=True), error)
            else:
                failed = data is None
                self._act(context, rule.action(self._mode, failed=failed), None)
        return data

    def _run_one(self, context: RuleContext, index: int, data: Any) -> Any:
        rule = context.rule
        executor = self._tools.executor(rule.type)
        if hasattr(executor, "visit"):
            if self._is_repeated(rule, index):
                return data
            if self._walk is None:
                raise RuleError(f"rule {rule.name}: there are no fields")
            changed = self._walk(data, _visiting(context, executor.visit(context)))
            return data if rule.is_condition else changed
        result = executor.run(context, data)
        if not rule.is_condition:
            return result
        if not result:
            raise RuleConditionError(rule)
        return data

    def _is_repeated(self, rule: Rule, index: int) -> bool:
        """Of rules for the same tags the first one written counts."""
        others = (
            self._rules[:index] if self._mode in ("WRITE", "UPGRADE") else self._rules[index + 1 :]
        )
        return any(rule.repeats(each) for each in others)

    def _act(self, context: RuleContext, action: str, error: Exception | None) -> None:
        match action:
            case "NONE":
                return
            case "ERROR":
                if isinstance(error, SerializationError):
                    raise error
                name = context.rule.name
                raise RuleError(f"rule {name} failed: {error}" if error else f"rule {name} failed")
            case _:
                self._tools.act(action, context, error)


def _visiting(context: RuleContext, change: Callable[[Field, frozenset[str], Any], Any]) -> Visit:
    rule = context.rule

    def visit(field: Field, value: Any) -> Any:
        tags = context.tags(field)
        if rule.tags and not rule.tags & tags:
            return value
        changed = change(field, tags, value)
        if rule.is_condition:
            if changed is False:
                raise RuleConditionError(rule)
            return value
        return changed

    return visit


def _came_from_dead_letters(headers: Headers, rule: Rule) -> bool:
    """A record that comes back from there is not refused by the same rule again."""
    if not headers:
        return False
    named = [value for name, value in headers if name == RULE_NAME_HEADER]
    return bool(named) and named[-1] == rule.name.encode()
