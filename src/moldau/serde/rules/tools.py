"""RuleTools: the executors and actions of one serializer or deserializer, made when needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from moldau.installation import pip_install
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.rules.dead_letters import DeadLetters
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.rule_sets import overrides_of
from moldau.serde.rules.running import Executor, FieldExecutor, RuleContext

if TYPE_CHECKING:
    from moldau.serde.rules.cel import CelValidator

__all__ = ["RuleTools"]


#: Settings of executors, such as of the KMS that encrypts keys.
PARAMS: Final = "rule.executors._default_.param."


class RuleTools:
    def __init__(
        self,
        registry: SchemaRegistryClient,
        config: Mapping[str, Any],
        *,
        dead_letter_topic: str | None,
    ) -> None:
        self._registry = registry
        self._params = {
            key.removeprefix(PARAMS): str(getattr(value, "value", value))
            for key, value in config.items()
            if key.startswith(PARAMS) and value is not None
        }
        self.overrides = overrides_of(config)
        self._executors: dict[str, Executor | FieldExecutor] = {}
        self._dead_letters = DeadLetters(config, dead_letter_topic)

    def executor(self, type: str) -> Executor | FieldExecutor:
        found = self._executors.get(type)
        if found is None:
            try:
                found = self._executors[type] = self._made(type)
            except ImportError as error:
                raise _missing(type, error) from None
        return found

    def validator(self) -> CelValidator:
        """For the rules within a schema."""
        try:
            from moldau.serde.rules.cel import CelValidator
        except ImportError as error:
            raise _missing("CEL", error) from None
        return CelValidator()

    def act(self, action: str, context: RuleContext, error: Exception | None) -> None:
        if action != "DLQ":
            raise RuleError(f"Could not find rule action of type {action}")
        self._dead_letters.send(context, error)

    def close(self) -> None:
        self._dead_letters.close()

    def _made(self, type: str) -> Executor | FieldExecutor:
        match type:
            case "CEL":
                from moldau.serde.rules.cel import CelExecutor

                return CelExecutor()
            case "CEL_FIELD":
                from moldau.serde.rules.cel import CelFieldExecutor

                return CelFieldExecutor()
            case "JSONATA":
                from moldau.serde.rules.jsonata import JsonataExecutor

                return JsonataExecutor()
            case "ENCRYPT" | "ENCRYPT_PAYLOAD":
                from moldau.serde.rules.encryption import (
                    EncryptFieldsExecutor,
                    Encryption,
                    EncryptPayloadExecutor,
                )

                encryption = Encryption(self._registry, params=self._params)
                if type == "ENCRYPT":
                    return EncryptFieldsExecutor(encryption)
                return EncryptPayloadExecutor(encryption)
            case _:
                raise RuleError(f"Could not find rule executor of type {type}")


def _missing(type: str, error: ImportError) -> RuleError:
    return RuleError(f"rules of type {type} need {error.name}: {pip_install('rules')}")
