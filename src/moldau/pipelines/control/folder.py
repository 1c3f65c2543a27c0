"""What a deployment folder holds for the control loop: its lock, its heartbeat, its settings.

Invariants: the process that holds the lock is the deployment's only loop, the process that holds
the owner's lock the only `moldau start --spark`; the system releases a lock when its process ends
in any way. The heartbeat is replaced as a whole, so that a reader
never sees half of one. How to reach the cluster may hold passwords: only the owner reads that file.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.machine.records import StatusRecord, UnreadableRecordError

__all__ = ["ControlFolder", "Heartbeat", "Lock"]

_OWNER_ONLY: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The loop's last sign of life, with what it knew then."""

    pid: int
    #: Distinguishes this process from a later one with the same id.
    mark: str
    at_ms: int
    #: When its thread last went round: it hangs if that is long before `at_ms`.
    round_at_ms: int
    started_at_ms: int
    bootstrap_servers: str
    deployment: str
    server_id: str | None = None
    #: What keeps it from its work: no server, no registry.
    problem: str | None = None
    pipelines: Mapping[str, Any] = field(default_factory=dict)

    def statuses(self) -> dict[str, StatusRecord]:
        found: dict[str, StatusRecord] = {}
        for name, fields in self.pipelines.items():
            try:
                found[name] = StatusRecord.from_json(fields)
            except UnreadableRecordError:
                continue
        return found


class Lock:
    """The right to be the deployment's loop, held until `release` or the process's end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def taken_over(cls, descriptor: int) -> Lock:
        """The lock of the program that this process ran before."""
        os.set_inheritable(descriptor, False)
        return cls(descriptor)

    def hand_over(self) -> int:
        """Keep the lock while the process executes another program; the descriptor for it."""
        os.set_inheritable(self._descriptor, True)
        return self._descriptor

    def release(self) -> None:
        os.close(self._descriptor)


class ControlFolder:
    """The files of one deployment."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # The loop has another working directory than its callers.
        self.path = Path(folder).absolute()
        self.logs = self.path / "logs"
        self.checkpoints = self.path / "checkpoints"
        #: What Spark's workers read of the pipelines' passwords, see `build/environment.py`.
        self.secrets = self.path / "secrets"
        #: The files of hosted applications.
        self.applications = self.path / "applications"
        #: The files of pipelines that run without Spark.
        self.tasks = self.path / "tasks"
        #: The loop's own log.
        self.output = self.path / "control.log"
        self._lock = self.path / "control.lock"
        self._owner = self.path / "owner.lock"
        self._heartbeat = self.path / "control.json"
        self._deployment = self.path / "deployment.json"
        self._cluster = self.path / "cluster.json"
        # The loop asks twice a second for what nearly never changes.
        self._fields_read: tuple[tuple[int, int], dict[str, Any]] | None = None

    def make(self) -> None:
        for folder in (self.path, self.logs, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)

    # The lock.

    def lock(self) -> Lock | None:
        """None if another process has it."""
        self.make()
        return _locked(self._lock, fcntl.LOCK_EX)

    def is_locked(self) -> bool:
        """Whether a loop runs from this folder."""
        return _is_locked(self._lock)

    # The owner: a process (`moldau start --spark`) with which loop and server end.

    def own(self) -> Lock | None:
        """Become the owner until `disown` or the process's end; None if another process is."""
        self.make()
        lock = _locked(self._owner, fcntl.LOCK_EX)
        if lock is not None:
            self._owner.write_text(str(os.getpid()))
        return lock

    def disown(self, lock: Lock) -> None:
        """Loop and server, if they still run, have no owner any more."""
        self._owner.unlink(missing_ok=True)
        lock.release()

    @property
    def owner(self) -> int | None:
        """The process that is the owner."""
        if not _is_locked(self._owner):
            return None
        with suppress(OSError, ValueError):
            return int(self._owner.read_text())
        return None

    def has_lost_owner(self) -> bool:
        """Whether the owner ended without `disown`: it was killed."""
        return self._owner.exists() and not _is_locked(self._owner)

    def forget_lost_owner(self) -> None:
        if self.has_lost_owner():
            self._owner.unlink(missing_ok=True)

    # What is written down.

    @property
    def deployment(self) -> str:
        """The deployment's id, made when it is first asked for."""
        return str(self._deployment_fields()["id"])

    @property
    def keep_server(self) -> bool:
        """Whether the Spark server is to run also while no pipeline does."""
        return bool(self._deployment_fields().get("keep_server", False))

    def set_keep_server(self, keep: bool) -> None:
        fields = self._deployment_fields()
        if bool(fields.get("keep_server", False)) != keep:
            _write(self._deployment, fields | {"keep_server": keep})

    def _deployment_fields(self) -> dict[str, Any]:
        state = _state_of(self._deployment)
        if self._fields_read is not None and self._fields_read[0] == state:
            return self._fields_read[1]
        fields = _read(self._deployment)
        if fields is not None and "id" in fields:
            # Read after its state was: if it was replaced in between, it is read again.
            self._fields_read = None if state is None else (state, fields)
            return fields
        self.make()
        made = self._deployment.with_name(f"deployment.{os.getpid()}.new")
        made.write_text(json.dumps({"id": uuid.uuid4().hex}))
        try:
            # Of several that make one at the same time the first is kept.
            os.link(made, self._deployment)
        except FileExistsError:
            pass
        finally:
            made.unlink()
        return _read(self._deployment) or {}

    @property
    def cluster(self) -> dict[str, str] | None:
        """The client's settings for the cluster that the loop works with, if one is known."""
        return _read(self._cluster)

    def set_cluster(self, config: Mapping[str, str]) -> None:
        self.make()
        if self.cluster != dict(config):
            _write(self._cluster, config, mode=_OWNER_ONLY)

    def beat(self, heartbeat: Heartbeat) -> None:
        _write(self._heartbeat, asdict(heartbeat))

    def heartbeat(self) -> Heartbeat | None:
        fields = _read(self._heartbeat)
        if fields is None:
            return None
        known = Heartbeat.__dataclass_fields__
        try:
            return Heartbeat(**{name: each for name, each in fields.items() if name in known})
        except TypeError:
            return None


def _locked(path: Path, kind: int) -> Lock | None:
    # No process that this one starts may inherit it: the server would keep it for ever.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return Lock(descriptor)


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    # Shared, so that several who ask at the same time do not take each other for the holder.
    lock = _locked(path, fcntl.LOCK_SH)
    if lock is None:
        return True
    lock.release()
    return False


def _state_of(path: Path) -> tuple[int, int] | None:
    """Another one for a file that was replaced; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _read(path: Path) -> dict[str, Any] | None:
    try:
        fields = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return fields if isinstance(fields, dict) else None


def _write(path: Path, fields: Mapping[str, Any], *, mode: int = 0o644) -> None:
    made = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        json.dump(fields, file)
    made.replace(path)
