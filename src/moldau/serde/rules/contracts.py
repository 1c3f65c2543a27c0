"""The rules of one schema around its encoding: what writing and reading a record goes through.

Written: data, domain rules, bytes, encoding rules; those within the schema run before or after the
domain rules. Read: bytes, encoding rules, data, migrations to the version that is read as, domain
rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from moldau.data.schema_language import ParsedSchema
from moldau.serde.coding import Decoding, Encoding
from moldau.serde.errors import RegistryError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.fields import walker_of
from moldau.serde.rules.machine.inline_rules import inline_rules_of
from moldau.serde.rules.machine.rule_sets import Mode, Phase, RuleSet, rules_to_run
from moldau.serde.rules.running import Record, RuleRunner
from moldau.serde.rules.tools import RuleTools
from moldau.serde.settings import SerdeSettings
from moldau.serde.values import PROTOBUF, RegisteredSchema, Schema

__all__ = ["DISABLED", "ReadRules", "WriteRules", "rule_tools"]

_BEFORE: Final = "BEFORE_DOMAIN_RULES"
DISABLED: Final = "DISABLED"


def rule_tools(registry: SchemaRegistryClient, settings: SerdeSettings) -> RuleTools:
    return RuleTools(
        registry,
        settings.config,
        dead_letter_topic=settings.dead_letter_topic,
    )


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes runners for one subject."""

    subject: str
    tools: RuleTools

    def runner(
        self,
        schema: Schema,
        mode: Mode,
        phase: Phase = "domain",
        parsed: ParsedSchema | None = None,
    ) -> RuleRunner | None:
        rules = rules_to_run(RuleSet.from_json(schema.rule_set), mode, phase, self.tools.overrides)
        if not rules:
            return None
        return RuleRunner(
            rules,
            mode=mode,
            subject=self.subject,
            metadata=schema.metadata,
            walk=None if parsed is None else walker_of(parsed),
            tools=self.tools,
        )


@dataclass(frozen=True, slots=True)
class WriteRules:
    encoding: Encoding
    domain: RuleRunner | None
    payload: RuleRunner | None
    check: Callable[[Any], None] | None
    checks_first: bool
    is_key: bool

    @classmethod
    def of(
        cls,
        subject: str,
        schema: Schema,
        parsed: ParsedSchema,
        encoding: Encoding,
        tools: RuleTools,
        settings: SerdeSettings,
    ) -> WriteRules | None:
        """None if no rule runs."""
        maker = _Maker(subject, tools)
        domain = maker.runner(schema, "WRITE", parsed=parsed)
        payload = maker.runner(schema, "WRITE", "encoding")
        when = settings.validation_rules
        check = None if when == DISABLED else _inline_check(parsed, tools, settings)
        if domain is None and payload is None and check is None:
            return None
        return cls(encoding, domain, payload, check, when == _BEFORE, settings.is_key)

    def write(self, topic: str, value: Any, headers: Any) -> bytes:
        prepare = self.encoding.prepare
        data = value if prepare is None else prepare(value)
        record = Record(topic, self.is_key, headers, data)
        if self.check is not None and self.checks_first:
            self.check(data)
        if self.domain is not None:
            data = self.domain.run(data, record)
        if self.check is not None and not self.checks_first:
            self.check(data)
        encoded = self.encoding.encode(data)
        if self.payload is not None:
            encoded = self.payload.run(encoded, record)
        return encoded


def _inline_check(
    parsed: ParsedSchema, tools: RuleTools, settings: SerdeSettings
) -> Callable[[Any], None]:
    """Raises RuleError with all that is wrong, or the first."""
    walk = inline_rules_of(parsed)
    validator = tools.validator()

    def check(data: Any) -> None:
        found: list[str] = []
        for each in walk(_as_registered(data, parsed)):
            said, reason = None, None
            try:
                if not each.rule.expr:
                    raise RuleError("the rule has no expression")
                result = validator.check(each.rule.expr, each.value, each.field)
            except RuleError as error:
                reason = str(error)
            else:
                if result is True or result == "":
                    continue
                said = result or None
            found.append(each.rule.described(each.path, said, reason))
            if settings.validation_fails_fast:
                break
        if found:
            count = f"{len(found)} violation{'' if len(found) == 1 else 's'}"
            lines = "".join(f"\n  - {each}" for each in found)
            raise RuleError(f"Validation rule failed ({count}):{lines}")

    return check


def _as_registered(data: Any, parsed: ParsedSchema) -> Any:
    """A message of a generated class as one of the registered schema, whose rules count."""
    if parsed.schema_type != PROTOBUF:
        return data
    schema: Any = parsed
    made = schema.message_class(data.DESCRIPTOR.full_name)
    return data if isinstance(data, made) else made.FromString(data.SerializeToString())


@dataclass(frozen=True, slots=True)
class ReadRules:
    decoding: Decoding
    payload: RuleRunner | None
    migrations: tuple[RuleRunner, ...]
    target: ParsedSchema
    domain: RuleRunner | None
    is_key: bool

    @classmethod
    def of(
        cls,
        registry: SchemaRegistryClient,
        subject: str,
        *,
        written: tuple[RegisteredSchema, ParsedSchema],
        latest: tuple[RegisteredSchema, ParsedSchema] | None,
        decoding: Decoding,
        plain: Decoding,
        tools: RuleTools,
        is_key: bool,
    ) -> ReadRules | None:
        """None if no rule runs. `plain` decodes as the data was written, for migrations."""
        maker = _Maker(subject, tools)
        target, parsed = written if latest is None else latest
        migrations: tuple[RuleRunner, ...] = ()
        if latest is not None:
            migrations = _migrations(registry, maker, written[0], latest[0])
        payload = maker.runner(written[0].schema, "READ", "encoding")
        domain = maker.runner(target.schema, "READ", parsed=parsed)
        if payload is None and domain is None and not migrations:
            return None
        return cls(plain if migrations else decoding, payload, migrations, parsed, domain, is_key)

    def read(
        self, topic: str, payload: bytes, indexes: bytes | None, headers: Any, original: bytes
    ) -> Any:
        record = Record(topic, self.is_key, headers, original)
        if self.payload is not None:
            payload = self.payload.run(payload, record)
        data = self.decoding.decode(payload, indexes)
        if self.migrations:
            data = self._migrated(data, record)
        if self.domain is not None:
            data = self.domain.run(data, record)
        finish = self.decoding.finish
        return data if finish is None else finish(data)

    def _migrated(self, data: Any, record: Record) -> Any:
        """Migrations see JSON: a Protobuf message goes through it."""
        if self.target.schema_type != PROTOBUF:
            for runner in self.migrations:
                data = runner.run(data, record)
            return data
        from google.protobuf import json_format

        shown: Any = json_format.MessageToDict(data, preserving_proto_field_name=True)
        for runner in self.migrations:
            shown = runner.run(shown, record)
        try:
            made: Any = self.target
            return json_format.ParseDict(shown, made.message_class()())
        except json_format.ParseError as error:
            raise RuleError(f"the migration does not make a message: {error}") from None


def _migrations(
    registry: SchemaRegistryClient,
    maker: _Maker,
    source: RegisteredSchema,
    target: RegisteredSchema,
) -> tuple[RuleRunner, ...]:
    """From the version that was written to the one that is read as, step by step."""
    try:
        first = registry.lookup(maker.subject, source.schema, deleted=True).version
    except RegistryError:
        return ()
    last = target.version
    if first is None or last is None or first == last:
        return ()
    mode: Mode = "UPGRADE" if first < last else "DOWNGRADE"
    low, high = min(first, last), max(first, last)
    found = []
    for number in range(low + 1, high + 1):
        try:
            version = registry.version(maker.subject, number)
        except RegistryError:
            # A version that was removed for good.
            continue
        # A version's rules lead to it from the one before, and back.
        runner = maker.runner(version.schema, mode)
        if runner is not None:
            found.append(runner)
    return tuple(found if mode == "UPGRADE" else reversed(found))
