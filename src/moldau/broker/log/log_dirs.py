"""The log directories named by `log.dirs`: their owner, and whether they were closed cleanly.

Decides whether a log directory may be used by this node (`meta.properties`, `.lock`) and whether
its last user stopped cleanly. Invariants: a log directory of another cluster or node is never
changed, and the clean-shutdown mark is removed before anything else is changed, but not by a start
that fails before that.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from moldau.broker.log.context import LogDirState
from moldau.broker.log.disk import Disk, Lock
from moldau.broker.log.machine.checkpoints import decode_clean_shutdown, encode_clean_shutdown
from moldau.broker.log.machine.names import (
    CLEAN_SHUTDOWN_FILE,
    INVENTORY_FILE,
    LOCK_FILE,
    META_PROPERTIES,
)
from moldau.config.properties import load_properties
from moldau.wire.uuids import uuid_from_text, uuid_to_text

logger = logging.getLogger(__name__)


class WrongLogDir(Exception):
    """A log directory cannot be used; the message has the reason and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The owner of a log directory."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: uuid.UUID | None = None

    def encode(self) -> bytes:
        """Version 1, as Kafka 3.7 and later write it."""
        lines = ["#", "version=1"]
        if self.cluster_id is not None:
            lines.append(f"cluster.id={self.cluster_id}")
        if self.directory_id is not None:
            lines.append(f"directory.id={uuid_to_text(self.directory_id)}")
        if self.node_id is not None:
            lines.append(f"node.id={self.node_id}")
        return ("\n".join(lines) + "\n").encode()

    @classmethod
    def decode(cls, path: str, data: bytes) -> MetaProperties:
        """Versions 0 (broker.id) and 1 (node.id)."""
        try:
            fields = load_properties(data.decode())
            version = int(fields.get("version", "-1"))
            node = fields.get("node.id" if version == 1 else "broker.id")
            if version not in (0, 1) or (version == 1 and node is None):
                raise ValueError(f"version={version}, node.id={node}")
            directory = fields.get("directory.id")
            return cls(
                cluster_id=fields.get("cluster.id"),
                node_id=None if node is None else int(node),
                directory_id=None if directory is None else uuid_from_text(directory),
            )
        except ValueError as error:
            raise WrongLogDir(
                f"{path} is damaged ({error}); restore it or format the log directory again"
            ) from None


class LogDir(LogDirState):
    """A log directory in use by this process."""

    __slots__ = (
        "_disk",
        "_lock",
        "broker_epoch",
        "clean_shutdown",
        "directory_id",
        "inventory",
        "mark_ms",
    )

    def __init__(
        self,
        disk: Disk,
        path: str,
        on_failure: Callable[[LogDirState], None] | None = None,
    ) -> None:
        super().__init__(path, on_failure)
        self._disk = disk
        self._lock: Lock | None = None
        self.directory_id: uuid.UUID | None = None
        self.clean_shutdown = False
        # The broker epoch of the last run when it stopped cleanly, else -1 (KIP-966).
        self.broker_epoch = -1
        # When the mark was written that was found, and the last inventory of the logs.
        self.mark_ms = -1
        self.inventory: bytes | None = None

    def open(
        self, *, cluster_id: str | None, node_id: int | None, new_id: Callable[[], uuid.UUID]
    ) -> None:
        """Lock the directory, check or write its owner, remove the clean-shutdown mark.

        With `cluster_id` None the owner is not checked (tools and tests).
        """
        self.claim(cluster_id=cluster_id, node_id=node_id, new_id=new_id)
        self.begin()

    def claim(
        self, *, cluster_id: str | None, node_id: int | None, new_id: Callable[[], uuid.UUID]
    ) -> None:
        """The first half of `open`: a start that fails here has removed no mark."""
        self._disk.make_dirs(self.path)
        self._lock = self._disk.lock(f"{self.path}/{LOCK_FILE}")
        try:
            if cluster_id is not None:
                self._own(cluster_id, node_id, new_id)
        except BaseException:
            self.unlock()
            raise

    def begin(self) -> None:
        """The second half of `open`, before anything is written."""
        try:
            self._read_inventory()
            mark = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
            self.clean_shutdown = self._disk.exists(mark)
            if self.clean_shutdown:
                self.broker_epoch = decode_clean_shutdown(self._disk.read_bytes(mark))
                self.mark_ms = self._disk.mtime_ms(mark)
                # First of all: a crash from here on is an unclean stop.
                self._disk.remove(mark)
                self._disk.sync_dir(self.path)
        except BaseException:
            self.unlock()
            raise

    def _read_inventory(self) -> None:
        """It stays until the next clean stop: after a kill it describes the logs that are as they
        were. Beside another mark it does not count."""
        path = f"{self.path}/{INVENTORY_FILE}"
        if self._disk.exists(path):
            self.inventory = self._disk.read_bytes(path)

    def clean_mark_ms(self) -> int:
        """When the clean-shutdown mark was written that is there now."""
        return self._disk.mtime_ms(f"{self.path}/{CLEAN_SHUTDOWN_FILE}")

    def put_mark_back(self) -> None:
        """Restore the mark with its epoch if there was one: since `begin` nothing was changed, or
        everything is as a clean stop leaves it."""
        if self.clean_shutdown and self.failure is None:
            self.mark_clean(self.broker_epoch)

    def _own(self, cluster_id: str, node_id: int | None, new_id: Callable[[], uuid.UUID]) -> None:
        path = f"{self.path}/{META_PROPERTIES}"
        found = MetaProperties()
        if self._disk.exists(path):
            found = MetaProperties.decode(path, self._disk.read_bytes(path))
            if found.cluster_id is not None and found.cluster_id != cluster_id:
                raise WrongLogDir(
                    f"{path} is of cluster {found.cluster_id}, not {cluster_id}; "
                    "change log.dirs or use the right cluster"
                )
            if found.node_id is not None and found.node_id != node_id:
                raise WrongLogDir(
                    f"{path} is of node {found.node_id}, not {node_id}; change log.dirs or node.id"
                )
        wanted = MetaProperties(
            cluster_id=cluster_id, node_id=node_id, directory_id=found.directory_id or new_id()
        )
        if wanted != found:
            self._disk.write_atomic(path, wanted.encode())
        self.directory_id = wanted.directory_id

    def mark_clean(self, broker_epoch: int) -> None:
        """Everything is flushed and closed: the next start needs no recovery."""
        self._disk.write_atomic(
            f"{self.path}/{CLEAN_SHUTDOWN_FILE}", encode_clean_shutdown(broker_epoch)
        )

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def claim_all(
    dirs: Collection[LogDir],
    *,
    cluster_id: str | None,
    node_id: int | None,
    new_id: Callable[[], uuid.UUID],
) -> None:
    """Claim every log directory; one that cannot be used at all goes offline.

    WrongLogDir and BlockingIOError (another process has the lock) unlock all of them.
    """
    for directory in dirs:
        try:
            directory.claim(cluster_id=cluster_id, node_id=node_id, new_id=new_id)
        except (BlockingIOError, WrongLogDir):
            _unlock_all(dirs)
            raise
        except OSError as error:
            directory.fail("opening it", error)
    _check_one_is_left(dirs)


def begin_all(dirs: Collection[LogDir]) -> None:
    """Begin with every log directory that can be used; WrongLogDir if there is none."""
    for directory in dirs:
        if directory.failure is None:
            try:
                directory.begin()
            except OSError as error:
                directory.fail("opening it", error)
    _check_one_is_left(dirs)


def put_marks_back(dirs: Iterable[LogDir]) -> None:
    """Restore the marks of unchanged log directories; one that fails costs the next start a
    recovery."""
    for directory in dirs:
        try:
            directory.put_mark_back()
        except OSError as error:
            logger.warning("%s: the clean-shutdown mark is lost: %s", directory.path, error)


def _check_one_is_left(dirs: Collection[LogDir]) -> None:
    if all(directory.failure for directory in dirs):
        _unlock_all(dirs)
        raise WrongLogDir(
            "no log directory of log.dirs can be used: "
            + "; ".join(str(d.failure.message) for d in dirs if d.failure)
        )


def _unlock_all(dirs: Collection[LogDir]) -> None:
    for directory in dirs:
        directory.unlock()
