"""Subjects and the contexts they are in.

A subject is named `:.context:subject`, or `subject` alone in the default context. A name with an
empty subject (`:.context:`) stands for the context itself where settings are concerned. The context
`.__GLOBAL` holds settings for all contexts and no subjects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.services.registry.machine.errors import InvalidContext

__all__ = [
    "ALL_CONTEXTS",
    "DEFAULT_CONTEXT",
    "GLOBAL_CONTEXT",
    "QualifiedSubject",
    "context_of",
    "has_context",
    "is_valid_subject",
    "normalize",
    "normalize_context",
    "qualify",
]

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
#: The prefix that stands for the subjects of all contexts.
ALL_CONTEXTS: Final = ":*:"

_PREFIX: Final = ":."
_RESERVED_SUBJECTS: Final = frozenset({"__GLOBAL", "__EMPTY"})
_LAST_CHARACTER: Final = "\uffff"


@dataclass(frozen=True, slots=True, order=True)
class QualifiedSubject:
    """A subject and its context. The order is that of Confluent's listings."""

    context: str
    subject: str

    @classmethod
    def parse(cls, name: str) -> QualifiedSubject:
        if name.startswith(_PREFIX):
            context, _, subject = name[1:].partition(":")
            return cls(context, subject)
        if name.startswith(ALL_CONTEXTS):
            return cls("*", name[len(ALL_CONTEXTS) :])
        return cls(DEFAULT_CONTEXT, name)

    @property
    def context_name(self) -> str:
        """The context as a prefix of subjects: empty for the default one."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def is_context(self) -> bool:
        """Whether the context as a whole is meant."""
        return not self.subject

    @property
    def is_default_context(self) -> bool:
        return self.context == DEFAULT_CONTEXT and not self.subject

    @property
    def is_global_context(self) -> bool:
        return self.context == GLOBAL_CONTEXT and not self.subject

    def contains(self, other: QualifiedSubject) -> bool:
        """Whether `other` is in the context that this name stands for."""
        return self.is_context and self.context in (GLOBAL_CONTEXT, other.context)

    def __str__(self) -> str:
        return self.context_name + self.subject


def normalize(name: str) -> str:
    """The one spelling of a subject: the default context is not written."""
    if not name.startswith(":"):
        return name
    return str(QualifiedSubject.parse(name))


def context_of(name: str) -> str:
    return QualifiedSubject.parse(name).context


def has_context(name: str) -> bool:
    """Whether a name says which context it is in."""
    return name.startswith((_PREFIX, ALL_CONTEXTS))


def normalize_context(name: str) -> str:
    """The prefix of subjects in a context that may be given as `ctx`, `.ctx` or `:.ctx:`."""
    bare = name.removeprefix(":").removesuffix(":")
    if ":" in bare:
        raise InvalidContext(bare)
    if not bare.startswith("."):
        bare = "." + bare
    return "" if bare == DEFAULT_CONTEXT else f":{bare}:"


def qualify(parent: str | None, name: str) -> QualifiedSubject:
    """The subject that `name` means to a schema or config in the context of `parent`."""
    subject = QualifiedSubject.parse(name)
    if subject.context == DEFAULT_CONTEXT and parent is not None:
        context = context_of(parent)
        if context != DEFAULT_CONTEXT:
            return QualifiedSubject(context, name)
    return subject


def is_valid_subject(name: str, *, for_settings: bool) -> bool:
    """Whether schemas, or else settings, can have this name."""
    if any(ord(each) <= 0x1F or 0x7F <= ord(each) <= 0x9F for each in name):
        return False
    subject = QualifiedSubject.parse(name)
    if subject.subject in _RESERVED_SUBJECTS:
        return False
    return for_settings or subject.context != GLOBAL_CONTEXT


def prefix_range(prefix: str) -> tuple[QualifiedSubject, QualifiedSubject]:
    """The first and the last subject whose names begin with a prefix, in one context."""
    if prefix == ALL_CONTEXTS:
        return QualifiedSubject(".", ""), QualifiedSubject("." + _LAST_CHARACTER, "")
    return QualifiedSubject.parse(prefix), QualifiedSubject.parse(prefix + _LAST_CHARACTER)
