"""Errors that end a command with one line: what failed, where, and what to do about it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.broker.config.listeners import Listener

__all__ = ["Failure", "explain_os_error", "listen_problem", "unusable_directory"]


class Failure(Exception):
    """Ends the command with its one line on stderr and exit code 1."""

    #: Whether no node answered at the cluster's address: the message then also gives its origin.
    is_about_address = False


class ToolError(Failure):
    """Ends the tool with one line and `exit_code`; on stdout where Kafka's tool prints it there."""

    def __init__(self, message: str, *, exit_code: int = 1, to_stdout: bool = False) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.to_stdout = to_stdout


def explain_os_error(error: OSError, listeners: Sequence[Listener]) -> str:
    """A start's OSError in words; the listener at fault is found by trying each again."""
    if isinstance(error.filename, str):
        hint = _FILE_HINTS.get(error.errno or 0, "")
        return f"{error.filename}: {_reason(error)}{hint}"
    if error.errno in _ADDRESS_ERRORS or isinstance(error, socket.gaierror):
        for listener in listeners:
            problem = listen_problem(listener.host, listener.port)
            if problem is not None:
                return f"cannot listen on {listener}: {problem}"
        return f"cannot listen: {_reason(error)}"
    return _reason(error)


def unusable_directory(path: str) -> str | None:
    """Why `path` cannot hold data, or None. Creates the directory if it does not exist."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        return f"{path} is not a directory. Choose another data directory"
    except OSError as error:
        return f"cannot create the data directory {path}: {_reason(error)}. Choose another one"
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return f"cannot write to the data directory {path}. Change its owner or choose another one"
    return None


_ADDRESS_ERRORS = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EAFNOSUPPORT)
_FILE_HINTS = {
    errno.EACCES: ". Change its owner or choose another data directory",
    errno.EPERM: ". Change its owner or choose another data directory",
    errno.EROFS: ". Choose another data directory",
    errno.ENOSPC: ". Free some space or choose another data directory",
    errno.EMFILE: ". Raise the limit of open files (ulimit -n)",
}


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _port_in_use(port: int) -> str:
    # Imported late: only a start that fails needs it.
    from moldau.cli.support.port_owners import port_owner

    owner = port_owner(port)
    if owner is not None:
        return f"port {port} is in use by {owner}. Stop it or choose another port, e.g. with --port"
    return (
        f"port {port} is in use. Stop what uses it (lsof -i :{port} "
        "shows it) or choose another port, e.g. with --port"
    )


def listen_problem(host: str, port: int) -> str | None:
    """Why it is not possible to listen there now, or None."""
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Without listening: whoever connected to the probe would be cut off with it.
            probe.bind(address)
    except socket.gaierror:
        return f"the host {host} is unknown. Use an address of this machine"
    except OSError as error:
        match error.errno:
            case errno.EADDRINUSE:
                return _port_in_use(port)
            case errno.EACCES:
                return f"port {port} needs privileges. Choose one above 1023"
            case errno.EADDRNOTAVAIL:
                return f"{host} is not an address of this machine"
            case _:
                return _reason(error)
    return None
