"""Whether a connector's configuration can be used: every setting with what is wrong, as Connect's
REST reports it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from moldau.config import did_you_mean
from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConfigKey,
    ConfigValue,
    ConnectError,
    Connector,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    Importance,
    Kind,
    SinkConnector,
    SourceConnector,
    Width,
)
from moldau.connect.built_in import PluginKind
from moldau.connect.chain import alias_names, aliases, with_prefix
from moldau.connect.connector_config import (
    PREDICATES,
    SINK,
    TRANSFORMS,
    VERSION_RANGE,
    source_config,
)
from moldau.connect.functions import PREFIX as PYTHON_PREFIX
from moldau.connect.functions import FunctionTransform
from moldau.connect.machine.dialects import (
    SHARED_PREFIXES,
    Dialect,
    dialect_of,
    refusals,
    translated,
    translates,
)
from moldau.connect.plugins import PLUGIN_VERSION, NoSuchPlugin, Plugins, named_plugin
from moldau.connect.runtime.clients import override_errors

__all__ = ["Validated", "key_info", "validate_connector"]


@dataclass(slots=True)
class Validated:
    """The result: definitions and values by key, in order."""

    connector_class: str
    definition: ConfigDef
    values: dict[str, ConfigValue]
    connector: Connector | None = None
    undefined: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        return [each for value in self.values.values() for each in value.errors]

    def as_json(self) -> dict[str, Any]:
        configs = []
        for name in [*self.undefined, *self.definition]:
            key = self.definition.get(name)
            value = self.values.get(name)
            configs.append(
                {
                    "definition": None if key is None else key_info(key),
                    "value": None if value is None else _value_info(key, value),
                }
            )
        return {
            "name": self.connector_class,
            "error_count": len(self.errors),
            "groups": self.definition.groups,
            "configs": configs,
        }


def key_info(key: ConfigKey) -> dict[str, Any]:
    """A setting's definition."""
    return {
        "name": key.name,
        "type": key.type.name,
        "required": key.required,
        "default_value": None if key.required else key.render(key.default),
        "importance": key.importance.name,
        "documentation": key.doc,
        "group": key.group,
        "width": key.width.value,
        "display_name": key.display_name or key.name,
        "dependents": list(key.dependents),
        "order_in_group": key.order,
    }


def _value_info(key: ConfigKey | None, value: ConfigValue) -> dict[str, Any]:
    def shown(each: Any) -> str | None:
        if each is None:
            return None
        return str(each) if key is None else key.render(each)

    return {
        "name": value.name,
        "value": shown(value.value),
        "recommended_values": [shown(each) for each in value.recommended_values],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def validate_connector(
    config: Mapping[str, str | None],
    plugins: Plugins,
    *,
    policy: str = "All",
    allowlist: Collection[str] = (),
    exactly_once: bool = False,
    worker: Mapping[str, str] = MappingProxyType({}),
) -> Validated:
    """Raises ConnectError if the connector's class is missing or not known. What the connector
    does not set is shown as the worker has it."""
    class_name = config.get("connector.class")
    if class_name is None:
        shown = ", ".join(f"{key}={each}" for key, each in config.items())
        raise ConfigError(f"Connector config {{{shown}}} contains no connector type")
    as_given = {key: each for key, each in config.items() if each is not None}
    given = translated(as_given)
    connector: Connector = plugins.connector(*named_plugin(given))()
    is_sink = isinstance(connector, SinkConnector)
    common = (SINK if is_sink else source_config(given)).including()
    _enrich(common, given, plugins)
    _set_defaults(common, given, plugins, worker)
    values = {each.name: each for each in common.validate(given)}
    own = connector.config()
    definition = common.including(own)
    _add_converters(definition, values, given, plugins)
    for each in connector.validate(given):
        _merge(values, each)
    found = Validated(class_name, definition, values, connector)
    for key, text in config.items():
        if text is None:
            _forget_default(found, key)
            for message in definition[key].null_errors(None) if key in definition else ():
                _error(found, key, message)
            _error(found, key, "Null value can not be supplied as the configuration value.")
    _check_classes(found, given, plugins)
    _check_aliases(found, given)
    if is_sink:
        _check_topics(found, given)
    else:
        _check_exactly_once(found, given, connector, exactly_once)
    for key, message in {**override_errors(policy, given, allowlist), **refusals(as_given)}.items():
        _error(found, key, message)
    _check_known(found, given, own, connector)
    return found


def _merge(values: dict[str, ConfigValue], other: ConfigValue) -> None:
    found = values.get(other.name)
    if found is None:
        values[other.name] = other
        return
    found.errors += [each for each in other.errors if each not in found.errors]
    found.recommended_values = found.recommended_values or other.recommended_values


def _error(found: Validated, key: str, message: str) -> None:
    value = found.values.get(key)
    if value is None:
        value = found.values[key] = ConfigValue(key)
    if key not in found.definition and key not in found.undefined:
        found.undefined.append(key)
    if message not in value.errors:
        value.errors.append(message)


def _enrich(definition: ConfigDef, given: Mapping[str, str], plugins: Plugins) -> None:
    """Add the settings of the transforms and predicates that the configuration names."""
    for what, kind, group in (
        ("transforms", PluginKind.TRANSFORMATION, TRANSFORMS),
        ("predicates", PluginKind.PREDICATE, PREDICATES),
    ):
        for alias in dict.fromkeys(alias_names(given, what)):
            _enrich_alias(definition, given, plugins, what, kind, f"{group}: {alias}", alias)


def _enrich_alias(
    definition: ConfigDef,
    given: Mapping[str, str],
    plugins: Plugins,
    what: str,
    kind: PluginKind,
    group: str,
    alias: str,
) -> None:
    prefix = f"{what}.{alias}."
    title = kind.value.capitalize()
    definition.define(
        f"{prefix}type",
        Kind.CLASS,
        importance=Importance.HIGH,
        group=group,
        order=0,
        width=Width.LONG,
        display_name=f"{title} type for {alias}",
        recommender=_Known(tuple(_classes(plugins, kind))),
        doc=f"The class of the {kind.value} {alias}.",
    )
    version = given.get(prefix + PLUGIN_VERSION)
    name = given.get(f"{prefix}type", "")
    definition.define(
        prefix + PLUGIN_VERSION,
        Kind.STRING,
        plugins.version_of(name) if name else None,
        validator=VERSION_RANGE,
        importance=Importance.HIGH,
        group=group,
        order=1,
        width=Width.LONG,
        display_name=f"{title} version for {alias}",
        doc=f"The version of the {kind.value} {alias}, or a range of versions.",
    )
    if not name.startswith(PYTHON_PREFIX):
        try:
            own: ConfigDef = plugins.find(name, [kind], version).config()
        except ConnectError:
            return
        _include(definition, own, prefix, group)
    if what == "transforms":
        _define_predicate(definition, prefix, group)


@dataclass(frozen=True, slots=True)
class _Known:
    """Recommends classes that there are."""

    names: tuple[str, ...]

    def valid_values(self, name: str, values: Mapping[str, Any]) -> Sequence[Any]:
        return self.names

    def visible(self, name: str, values: Mapping[str, Any]) -> bool:
        return True


def _classes(plugins: Plugins, kind: PluginKind) -> list[str]:
    return sorted({each.class_name for each in plugins.list() if each.kind is kind})


def _define_predicate(definition: ConfigDef, prefix: str, group: str) -> None:
    definition.define(
        f"{prefix}negate",
        Kind.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        group=group,
        display_name="negate",
        doc="Whether the transformation applies where the predicate does not.",
    ).define(
        f"{prefix}predicate",
        Kind.STRING,
        None,
        importance=Importance.MEDIUM,
        group=group,
        display_name="predicate",
        doc="The name of a predicate that decides whether the transformation applies.",
    )


def _include(definition: ConfigDef, own: ConfigDef, prefix: str, group: str | None) -> None:
    """Add settings with a prefix, in one group, or without one in their own groups."""
    for key in own.values():
        if group is None and prefix + key.name not in definition:
            definition.add(replace(key, name=prefix + key.name))
        if prefix + key.name not in definition:
            definition.define(
                prefix + key.name,
                key.type,
                key.default,
                validator=key.validator,
                importance=key.importance,
                doc=key.doc,
                group=group,
                width=key.width,
                display_name=key.display_name or key.name,
                dependents=tuple(prefix + each for each in key.dependents),
            )


_CONVERTERS = {
    "key": PluginKind.CONVERTER,
    "value": PluginKind.CONVERTER,
    "header": PluginKind.HEADER_CONVERTER,
}
_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def _set_defaults(
    definition: ConfigDef, given: Mapping[str, str], plugins: Plugins, worker: Mapping[str, str]
) -> None:
    """What holds if the connector says nothing: the worker's converters, the versions there are."""
    named = {"connector": given["connector.class"]}
    for side in _CONVERTERS:
        key = f"{side}.converter"
        default = worker.get(key) or (_HEADER_CONVERTER if side == "header" else None)
        definition.change(key, default=default)
        named[key] = given.get(key) or default or ""
    for prefix, name in named.items():
        key = f"{prefix}.{PLUGIN_VERSION}"
        version = plugins.version_of(name) if name else None
        if key in definition and version is not None:
            definition.change(key, default=version)


def converter_type(own: ConfigDef) -> ConfigDef:
    """The settings of a converter with the one that the worker itself sets."""
    first = ConfigDef().define(
        "converter.type",
        Kind.STRING,
        importance=Importance.LOW,
        doc="What the converter is for: key, value or header. The worker sets it.",
    )
    return first.including(own)


def _add_converters(
    definition: ConfigDef,
    values: dict[str, ConfigValue],
    given: Mapping[str, str],
    plugins: Plugins,
) -> None:
    """The settings of the converters that the connector names."""
    for side, kind in _CONVERTERS.items():
        key = f"{side}.converter"
        values[key].recommended_values = _classes(plugins, kind)
        if not given.get(key):
            continue
        prefix, own = f"{key}.", with_prefix(given, f"{key}.")
        try:
            found = plugins.find(given[key], [kind], own.pop(PLUGIN_VERSION, None))
        except ConnectError:
            continue
        settings = converter_type(found.config())
        _include(definition, settings, prefix, None)
        for each in settings.validate({"converter.type": side, **own}):
            each.name = prefix + each.name
            values[each.name] = each


def _forget_default(found: Validated, key: str) -> None:
    """A setting that is given as null is neither missing nor its default."""
    value = found.values.get(key)
    if value is not None:
        value.value = None
        value.errors = [each for each in value.errors if not each.startswith("Missing required")]


def _check_classes(found: Validated, given: Mapping[str, str], plugins: Plugins) -> None:
    for side, kind in _CONVERTERS.items():
        key = f"{side}.converter"
        if given.get(key):
            _check_plugin(found, given, plugins, key, kind, with_prefix(given, f"{key}."))
    for what, kind in (
        ("transforms", PluginKind.TRANSFORMATION),
        ("predicates", PluginKind.PREDICATE),
    ):
        try:
            names = aliases(given, what)
        except ConfigError as error:
            _error(found, what, str(error))
            continue
        for alias in names:
            key = f"{what}.{alias}.type"
            if given.get(key):
                own = with_prefix(given, f"{what}.{alias}.")
                for each in ("type", "predicate", "negate"):
                    own.pop(each, None)
                _check_plugin(found, given, plugins, key, kind, own)


def _check_plugin(
    found: Validated,
    given: Mapping[str, str],
    plugins: Plugins,
    key: str,
    kind: PluginKind,
    own: dict[str, str],
) -> None:
    """Make the plug-in and configure it: what it refuses is an error of its setting."""
    name, version = given[key], own.pop(PLUGIN_VERSION, None)
    try:
        if kind is PluginKind.TRANSFORMATION and name.startswith(PYTHON_PREFIX):
            FunctionTransform.named(key, name).configure(own)
            return
        made = plugins.find(name, [kind], version)()
        if kind is PluginKind.CONVERTER:
            made.configure(own, is_key=key.startswith("key."))
        else:
            made.configure(own)
        made.close()
    except (ConfigError, ConnectError) as error:
        named = getattr(error, "key", None)
        prefix = key.removesuffix("type") if key.endswith(".type") else f"{key}."
        at = prefix + named if named and not str(named).startswith(prefix) else named or key
        if at not in found.definition or not found.values.get(at, ConfigValue(at)).errors:
            text = str(error)
            if isinstance(error, NoSuchPlugin):
                found.values[key].value = None
                reason = f"Class {name} could not be found. {error}"
                text = str(ConfigError.invalid(key, name, reason))
            _error(found, at if at in found.definition else key, text)
    except Exception as error:
        _error(found, key, f"{type(error).__name__}: {error}")


def _check_aliases(found: Validated, given: Mapping[str, str]) -> None:
    try:
        transforms, predicates = aliases(given, "transforms"), aliases(given, "predicates")
    except ConfigError:
        return
    for alias in transforms:
        prefix = f"transforms.{alias}."
        predicate = given.get(f"{prefix}predicate")
        if predicate is not None and predicate not in predicates:
            _error(
                found,
                f"{prefix}predicate",
                f"Invalid value {predicate} for configuration {prefix}predicate: it is not in "
                f"predicates: {', '.join(predicates) or 'there are none'}",
            )
        if predicate is None and f"{prefix}negate" in given:
            _error(
                found,
                f"{prefix}type",
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' "
                "defining a predicate to be negated.",
            )


def _check_topics(found: Validated, given: Mapping[str, str]) -> None:
    topics, regex = given.get("topics", "").strip(), given.get("topics.regex", "").strip()
    dead = given.get("errors.deadletterqueue.topic.name", "").strip()
    if topics and regex:
        for key in ("topics", "topics.regex"):
            _error(
                found,
                key,
                "topics and topics.regex are mutually exclusive options, but both are set.",
            )
    if not topics and not regex:
        for key in ("topics", "topics.regex"):
            _error(found, key, "Must configure one of topics or topics.regex")
    names = [each.strip() for each in topics.split(",") if each.strip()]
    if dead and dead in names:
        _error(
            found,
            "topics",
            f"The DLQ topic '{dead}' may not be included in the list of topics "
            f"('topics=[{', '.join(names)}]') consumed by the connector",
        )
    if dead and regex and _matches(regex, dead):
        _error(
            found,
            "topics.regex",
            f"The DLQ topic '{dead}' may not be matched by the regex for the topics "
            f"('topics.regex={regex}') consumed by the connector",
        )


def _matches(regex: str, topic: str) -> bool:
    try:
        return re.fullmatch(regex, topic) is not None
    except re.error:
        return False


def _check_exactly_once(
    found: Validated, given: Mapping[str, str], connector: Connector, enabled: bool
) -> None:
    if not isinstance(connector, SourceConnector):
        return
    if given.get("exactly.once.support", "").lower() == "required":
        if not enabled:
            _error(
                found,
                "exactly.once.support",
                "This worker does not have exactly-once source support enabled.",
            )
        else:
            _check_support(found, given, connector)
    if given.get("transaction.boundary", "").lower() == "connector":
        try:
            boundaries = connector.can_define_transaction_boundaries(given)
        except Exception as error:
            _error(found, "transaction.boundary", str(error))
            return
        if boundaries is not ConnectorTransactionBoundaries.SUPPORTED:
            _error(
                found,
                "transaction.boundary",
                "The connector does not support connector-defined transaction boundaries with the "
                "given configuration. Please reconfigure it to use a different transaction "
                "boundary definition.",
            )


def _check_support(found: Validated, given: Mapping[str, str], connector: SourceConnector) -> None:
    try:
        support = connector.exactly_once_support(given)
    except Exception as error:
        _error(found, "exactly.once.support", str(error))
        return
    if support is None:
        _error(
            found,
            "exactly.once.support",
            "The connector does not implement the API required for preflight validation of "
            "exactly-once source support.",
        )
    elif support is not ExactlyOnceSupport.SUPPORTED:
        _error(
            found,
            "exactly.once.support",
            "The connector does not support exactly-once semantics with the provided "
            "configuration.",
        )


def _check_known(
    found: Validated, given: Mapping[str, str], own: ConfigDef, connector: Connector
) -> None:
    """A setting that nobody reads is named, for connectors that say so (`STRICT`)."""
    if not connector.STRICT:
        return
    for key in given:
        if key not in found.definition and not key.startswith(SHARED_PREFIXES):
            _error(
                found,
                key,
                f"{found.connector_class} has no setting {key}.{did_you_mean(key, own)}",
            )


def unread_settings(found: Validated, given: Iterable[str]) -> list[str]:
    """The given settings that neither the worker nor the connector defines, nor anybody
    translates."""
    dialect = dialect_of(found.connector_class) or Dialect()
    passed_on = () if found.connector is None else found.connector.PASSED_ON
    return [
        key
        for key in given
        if key not in found.definition
        and not key.startswith((*SHARED_PREFIXES, *passed_on))
        and translates(dialect, key) is None
    ]
