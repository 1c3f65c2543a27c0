"""Which records of the topic count, when two instances took themselves for the primary.

A primary begins its term by writing a Noop with an epoch higher than all before it, and puts that
epoch on every record it writes. The order of the topic decides: once a Noop of a higher epoch is
there, records of a lower one are ignored, by every instance alike. A former primary notices when it
reads its own record back. Records without an epoch are from Confluent's registry, and count.

Because compaction keeps the newest record of a key, an ignored record would hide the one that
counts: the primary writes the key again (`repair`).
"""

from __future__ import annotations

from moldau.services.registry.machine.associations import AssociationSet
from moldau.services.registry.machine.records import (
    ClearSubject,
    ConfigSet,
    ContextSet,
    DeleteSubject,
    ModeSet,
    Noop,
    Record,
    SchemaSet,
)
from moldau.services.registry.machine.state import RegistryState

__all__ = ["Fence", "repair"]


class Fence:
    """The epoch of the present primary."""

    def __init__(self) -> None:
        self.epoch = 0

    def accepts(self, record: Record, epoch: int | None) -> bool:
        """Whether the next record of the topic counts."""
        if epoch is None:
            return True
        if isinstance(record, Noop) and epoch > self.epoch:
            self.epoch = epoch
            return True
        return epoch == self.epoch and not _opens_term(record)


def _opens_term(record: Record) -> bool:
    """A second Noop of an epoch that only says that it begins."""
    return isinstance(record, Noop) and record.opens_term


def repair(state: RegistryState, ignored: Record) -> Record | None:
    """What to write so that the key of an ignored record has the value that counts."""
    match ignored:
        case SchemaSet(subject, version, _):
            return SchemaSet(subject, version, state.version(subject, version, deleted=True))
        case ConfigSet(subject, _):
            return ConfigSet(subject, state.config(subject))
        case ModeSet(subject, _):
            return ModeSet(subject, state.mode(subject))
        case AssociationSet(id, _):
            return AssociationSet(id, state.associations.get(id))
        case ContextSet(context, _):
            return ContextSet(context, context in state.contexts)
        case Noop():
            return Noop(dict(state.id_maxima))
        case DeleteSubject(subject, _):
            versions = state.versions(subject, deleted=True)
            gone = [each.version for each in versions if each.deleted]
            kept = [each.version for each in versions if not each.deleted]
            # Nothing below a version that lives may be deleted by it.
            last = max((each for each in gone if not kept or each < min(kept)), default=0)
            return DeleteSubject(subject, last)
        case ClearSubject():
            return None
