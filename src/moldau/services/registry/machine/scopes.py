"""Which config and mode hold for a subject: its own, its context's, the registry's.

The name None stands for the registry as a whole, which is the default context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.errors import not_permitted
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    QualifiedSubject,
    normalize,
    qualify,
)

__all__ = ["IMPORT", "MODES", "READWRITE", "Scopes", "ServerDefaults"]

READWRITE: Final = "READWRITE"
IMPORT: Final = "IMPORT"
FORWARD: Final = "FORWARD"
MODES: Final = (READWRITE, "READONLY", "READONLY_OVERRIDE", IMPORT, FORWARD)
_READ_ONLY: Final = ("READONLY", "READONLY_OVERRIDE")
_GLOBAL_NAME: Final = QualifiedSubject(GLOBAL_CONTEXT, "").context_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDefaults:
    """What the configuration file says about all subjects."""

    compatibility_level: str = "BACKWARD"
    validate_fields: bool = False
    mode_mutability: bool = True


class Scopes:
    """A view of the state: settings as they apply."""

    def __init__(self, state: RegistryState, defaults: ServerDefaults) -> None:
        self._state = state
        self.defaults = defaults

    def own_config(self, subject: str | None) -> Config | None:
        """The config of this name alone; the registry and the global context always have one."""
        own = self._state.config(subject)
        level = self.defaults.compatibility_level
        if own is None:
            return Config(compatibility_level=level) if _is_top(subject) else None
        return own.with_default_level(level)

    def config(self, subject: str | None) -> Config:
        """The config that holds for a subject or context."""
        own = self.own_config(subject)
        if subject is None:
            return self._top_config(subject)
        if own is None:
            return self._top_config(subject)
        return own.over(self.own_config(None) or Config())

    def _top_config(self, subject: str | None) -> Config:
        level = self.defaults.compatibility_level
        for name in (subject, _context_name(subject), _GLOBAL_NAME):
            found = self._state.config(name)
            if found is not None:
                return found.with_default_level(level)
        return Config(compatibility_level=level)

    def own_mode(self, subject: str | None) -> str | None:
        own = self._state.mode(subject)
        return READWRITE if own is None and _is_top(subject) else own

    def mode(self, subject: str | None) -> str:
        for name in (subject, _context_name(subject), _GLOBAL_NAME):
            found = self._state.mode(name)
            if found is not None:
                return found
        return READWRITE

    def is_import(self, subject: str) -> bool:
        """Whether schemas come with their ids, and unchecked."""
        return self.mode(subject) in (IMPORT, FORWARD)

    def check_writable(self, subject: str | None) -> None:
        if self.mode(subject) in _READ_ONLY:
            context = "" if subject is None else QualifiedSubject.parse(subject).context_name
            raise not_permitted(f"Subject {subject} in context {context} is in read-only mode")

    def validates_fields(self, config: Config) -> bool:
        if config.validate_fields is None:
            return self.defaults.validate_fields
        return config.validate_fields

    def resolve_alias(self, subject: str, *, for_deks: bool = False) -> str:
        """The subject that a request for this one is about."""
        config = self._state.config(normalize(subject))
        if config is None:
            return subject
        alias = (config.alias_for_deks if for_deks else None) or config.alias
        return str(qualify(subject, alias)) if alias else subject


def _is_top(subject: str | None) -> bool:
    return subject is None or QualifiedSubject.parse(subject).context == GLOBAL_CONTEXT


def _context_name(subject: str | None) -> str | None:
    if subject is None:
        return None
    name = QualifiedSubject.parse(subject)
    return None if name.context == DEFAULT_CONTEXT else name.context_name
