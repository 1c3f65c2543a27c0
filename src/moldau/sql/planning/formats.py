"""Which features and formats keys and values get when a statement does not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moldau.sql.errors import KsqlException
from moldau.sql.ports import Format, FormatFactory
from moldau.sql.sources.data_source import UNWRAP, WRAP, WRAPPING, FormatInfo, KeyFormat
from moldau.sql.types import SqlType

_SINGLE_COLUMN_ONLY = ("KAFKA", "NONE")


class Formats:
    """Formats by their description."""

    def __init__(self, factory: FormatFactory) -> None:
        self._factory = factory

    def of(self, info: FormatInfo) -> Format:
        return self._factory(info.name, dict(info.properties))

    def key_features(self, info: FormatInfo, *, is_single: bool) -> frozenset[str]:
        found = self.of(info)
        if is_single and found.supports(WRAP) and found.supports(UNWRAP):
            return frozenset({UNWRAP})
        return frozenset()

    def value_features(
        self,
        info: FormatInfo,
        *,
        is_single: bool,
        explicit: frozenset[str],
        wrap_default: bool | None,
    ) -> frozenset[str]:
        found = self.of(info)
        for feature in explicit & WRAPPING:
            if not found.supports(feature):
                shown = "true" if feature == WRAP else "false"
                raise KsqlException(
                    f"Format '{info.name}' does not support 'WRAP_SINGLE_VALUE' set to '{shown}'."
                )
            if not is_single:
                raise KsqlException(
                    "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas"
                )
            return frozenset({feature})
        if not is_single or wrap_default is None:
            return frozenset()
        feature = WRAP if wrap_default else UNWRAP
        return frozenset({feature}) if found.supports(feature) else frozenset()

    def sanitized(
        self, key_format: KeyFormat, types: Sequence[SqlType], *, may_change: bool
    ) -> KeyFormat:
        """A key format for columns of these types: JSON where the format cannot hold them."""
        found = key_format
        if may_change:
            many = len(types) > 1 and found.format.name in _SINGLE_COLUMN_ONLY
            holds = self.of(found.format).supports_key_type
            if many or not all(holds(each) for each in types):
                if found.is_windowed:
                    raise KsqlException("Should not convert format of windowed key")
                found = KeyFormat(FormatInfo.of("JSON"))
        wrapping = found.features & WRAPPING
        if len(types) == 1 and not wrapping:
            features = self.key_features(found.format, is_single=True)
            return replace(found, features=features)
        if len(types) != 1 and wrapping:
            return replace(found, features=found.features - wrapping)
        return found
