"""Secrets and addresses that a definition names but does not hold: `${env:NAME}`.

They are put in when the pipeline is started, so that neither the file nor the registry has them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from moldau.pipelines.definition import Pipeline
from moldau.pipelines.errors import PipelineError

_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_PARTS = ("source", "sources", "sink", "kafka", "checkpoint")


def with_environment(pipeline: Pipeline, environment: Mapping[str, str] | None = None) -> Pipeline:
    """The pipeline with every `${env:NAME}` outside of its steps replaced."""
    variables = os.environ if environment is None else environment
    fields = pipeline.to_json()
    replaced = {
        name: _replaced(value, variables, name, fields.get("place")) if name in _PARTS else value
        for name, value in fields.items()
    }
    return pipeline if replaced == fields else Pipeline.from_json(replaced)


def _replaced(value: Any, variables: Mapping[str, str], part: str, place: Any) -> Any:
    if isinstance(value, Mapping):
        here = value.get("place", place)
        return {key: _replaced(one, variables, part, here) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, variables, part, place) for one in value]
    if not isinstance(value, str):
        return value

    def put(found: re.Match[str]) -> str:
        if found[1] not in variables:
            where = str(place).rpartition("/")[2] if place else None
            raise PipelineError(
                f"{part}: the environment has no variable {found[1]}",
                where=where,
                hint="set it where the control loop runs",
            )
        return variables[found[1]]

    return _REFERENCE.sub(put, value)
