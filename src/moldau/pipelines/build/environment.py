"""Secrets and addresses that a definition names but does not hold: `${env:NAME}` and its like.

They are put in when the pipeline is started, so that neither the file nor the registry has them.
Spark shows the options of sources and sinks in many places (plans, its UI, the event log), so the
secrets among them are then written to files that only the owner can read, and Spark gets references
to these: its clients read them themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.config.providers import DirectoryConfigProvider, FileConfigProvider, resolve
from moldau.config.variables import PROVIDERS_KEY, Variable, replace_variables
from moldau.pipelines.definition import Mask, Pipeline
from moldau.pipelines.definition.secrets import BUILT_IN, is_secret, kafka_settings
from moldau.pipelines.errors import PipelineError

__all__ = ["with_environment", "with_references"]

_PARTS = ("source", "sources", "sink", "sinks", "kafka", "checkpoint")
_PROVIDER: Final = "moldau"
# Also Spark's own connector knows it by this name.
_CLASS: Final = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"


def with_environment(pipeline: Pipeline, environment: Mapping[str, str] | None = None) -> Pipeline:
    """The pipeline with every variable outside of its steps replaced, also those in masks, and with
    absolute paths of certificates and keys."""
    variables = os.environ if environment is None else environment
    fields = pipeline.to_json()
    replaced = dict(fields)
    if PROVIDERS_KEY in pipeline.kafka:
        try:
            replaced["kafka"] = resolve(pipeline.kafka)
        except ConfigError as error:
            raise PipelineError(f"kafka: {error}", where=_file_of(fields.get("place"))) from None
    for name in _PARTS:
        if name in replaced:
            values = _Values(variables, pipeline.base, name)
            replaced[name] = _replaced(replaced[name], values, fields.get("place"))
    replaced["steps"] = [
        # Texts of SQL and functions may have a `$` of their own.
        _replaced(step, _Values(variables, pipeline.base, f"steps[{index}]"), fields.get("place"))
        if Mask.KIND in step
        else step
        for index, step in enumerate(fields["steps"])
    ]
    for _, settings in kafka_settings(replaced):
        for name, value in settings.items():
            if name.removeprefix("kafka.").endswith("store.location"):
                settings[name] = str(Path(pipeline.base, str(value)))
    return pipeline if replaced == fields else Pipeline.from_json(replaced)


class _Values:
    """Looks variables up where the control loop runs."""

    def __init__(self, environment: Mapping[str, str], base: str, part: str) -> None:
        self._environment = environment
        self._base = base
        self._part = part

    def find(self, variable: Variable, place: Any) -> str | None:
        """None if it is not one of ours."""
        if variable.provider not in BUILT_IN:
            return None
        try:
            found = self._look_up(variable)
        except ConfigError as error:
            raise PipelineError(f"{self._part}: {error}", where=_file_of(place)) from None
        if found is None:
            is_env = variable.provider == "env"
            what = "the environment has no variable" if is_env else f"{variable.path} has no"
            raise PipelineError(
                f"{self._part}: {what} {variable.key}",
                where=_file_of(place),
                hint="set it where the control loop runs",
            )
        return found

    def _look_up(self, variable: Variable) -> str | None:
        if variable.provider == "env":
            return self._environment.get(variable.key)
        made = FileConfigProvider() if variable.provider == "file" else DirectoryConfigProvider()
        made.configure({})
        path = str(Path(self._base, variable.path))
        return made.get(path, [variable.key]).get(variable.key)


def _replaced(value: Any, values: _Values, place: Any) -> Any:
    if isinstance(value, Mapping):
        here = value.get("place", place)
        return {key: _replaced(one, values, here) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, values, place) for one in value]
    if not isinstance(value, str):
        return value
    return replace_variables(value, lambda variable: values.find(variable, place))


def _file_of(place: Any) -> str | None:
    return str(place).rpartition("/")[2] if place else None


def with_references(pipeline: Pipeline, folder: Path) -> Pipeline:
    """The pipeline with its clients' secrets in files of `folder`, where Spark's workers read them.

    Only for workers that are on this machine.
    """
    fields = pipeline.to_json()
    written: dict[str, str] = {}

    def put(part: str, settings: dict[str, Any], prefix: str) -> None:
        for name, value in settings.items():
            if is_secret(name) and name.startswith(prefix):
                written[f"{part}.{name}"] = str(value)
                settings[name] = f"${{{_PROVIDER}:{folder}:{part}.{name}}}"

    for part, settings in kafka_settings(fields):
        put(part, settings, "" if part == "kafka" else "kafka.")
    if not written:
        return pipeline
    fields["kafka"] = {
        **fields.get("kafka", {}),
        PROVIDERS_KEY: _PROVIDER,
        f"{PROVIDERS_KEY}.{_PROVIDER}.class": _CLASS,
    }
    _write(folder, written)
    return Pipeline.from_json(fields)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    for name, text in files.items():
        # Another query of the pipeline may just be reading it.
        made = folder / f".{name}.{os.getpid()}.new"
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        made.replace(folder / name)
