"""Changing configs and modes."""

from __future__ import annotations

from moldau.services.registry.machine.configs import Config, ConfigChange
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import (
    invalid_mode,
    not_permitted,
    reference_exists,
    subject_not_found,
)
from moldau.services.registry.machine.records import (
    ClearSubject,
    ConfigSet,
    ModeSet,
    Noop,
    Record,
    SchemaSet,
)
from moldau.services.registry.machine.scopes import FORWARD, IMPORT, MODES, Scopes
from moldau.services.registry.machine.state import RegistryState
from moldau.services.registry.machine.subjects import QualifiedSubject

__all__ = ["Settings"]


class Settings:
    """A subject of None is the registry as a whole."""

    def __init__(self, state: RegistryState, scopes: Scopes) -> None:
        self._state = state
        self._scopes = scopes

    def set_config(self, subject: str | None, change: ConfigChange) -> Decision[Config]:
        self._scopes.check_writable(subject)
        config = change.apply(self._state.config(subject))
        return Decision((ConfigSet(subject, config),), config)

    def delete_config(self, subject: str | None) -> Decision[Config]:
        """The config that was there."""
        config = self._scopes.own_config(subject)
        if config is None:
            raise subject_not_found(subject)
        self._scopes.check_writable(subject)
        return Decision((ConfigSet(subject, None),), config)

    def set_mode(
        self, subject: str | None, mode: str | None, *, force: bool
    ) -> Decision[str | None]:
        """A mode of None removes it."""
        checked = None if mode is None else mode.upper()
        if checked is not None and checked not in MODES:
            raise invalid_mode()
        is_global = subject is not None and QualifiedSubject.parse(subject).is_global_context
        if checked == FORWARD and not is_global:
            raise invalid_mode("Forward mode only supported on global level")
        self._check_mutable()
        records: list[Record] = []
        if checked == IMPORT and self._scopes.mode(subject) != IMPORT and not force:
            records += self._room_for_import(subject)
        return Decision((*records, ModeSet(subject, checked)), mode)

    def _room_for_import(self, subject: str | None) -> list[Record]:
        """Ids may only be brought along where there are none."""
        if self._state.has_subject(subject, deleted=False):
            raise not_permitted("Cannot import since found existing subjects")
        records: list[Record] = []
        for name in self._state.matching(subject, deleted=True):
            for each in self._state.versions(name, deleted=True):
                if self._state.references_to(name, each.version):
                    raise reference_exists(name, each.version)
                records.append(SchemaSet(name, each.version, None))
        if records:
            records.append(Noop(dict(self._state.id_maxima)))
        return [*records, ClearSubject(subject)]

    def delete_mode(self, subject: str | None, *, recursive: bool) -> Decision[str | None]:
        """The mode that was there."""
        mode = self._scopes.own_mode(subject)
        if mode is None and not recursive:
            raise subject_not_found(subject)
        self._check_mutable()
        records: list[Record] = [ModeSet(subject, None)]
        if recursive:
            scope = QualifiedSubject.parse(subject or "")
            records += [
                ModeSet(name, None)
                for name in self._state.modes
                if name is not None
                and name != subject
                and scope.contains(QualifiedSubject.parse(name))
            ]
        return Decision(tuple(records), mode)

    def _check_mutable(self) -> None:
        if not self._scopes.defaults.mode_mutability:
            raise not_permitted("Mode changes are not allowed")
