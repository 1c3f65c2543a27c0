"""JSONATA, by jsonata-python: mostly migrations from one version of a schema to another."""

from __future__ import annotations

from typing import Any, Final

import jsonata

from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.running import RuleContext

__all__ = ["JsonataExecutor"]

EXPRESSIONS_MAX: Final = 1000


class JsonataExecutor:
    """Expressions are compiled once."""

    def __init__(self) -> None:
        self._expressions: dict[str, Any] = {}

    def run(self, context: RuleContext, data: Any) -> Any:
        text = context.rule.expr
        if text is None:
            raise RuleError(f"rule {context.rule.name} has no expression")
        expression = self._expressions.get(text)
        if expression is None:
            if len(self._expressions) >= EXPRESSIONS_MAX:
                self._expressions.clear()
            expression = self._expressions[text] = jsonata.Jsonata(text)
        return expression.evaluate(data)
