"""Profiles: named clusters, each a properties file in the user's configuration directory.

    ~/.config/moldau/profiles/NAME.properties   bootstrap.servers and any other client property
    ~/.config/moldau/profile                    the name of the profile in use

XDG_CONFIG_HOME replaces ~/.config. Only the owner can read the files: they may contain passwords.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from moldau.cli.support.failures import Failure
from moldau.config.errors import ConfigError
from moldau.config.properties import dump_properties, load_properties
from moldau.config.suggestions import did_you_mean

__all__ = ["Profiles"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class Profiles:
    """The profiles of one user. Every problem is a Failure that names the file."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        home = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        self._folder = Path(home) / "moldau"
        self._in_use = self._folder / "profile"

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.path_of("any").parent.glob("*.properties"))

    def path_of(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise Failure(
                f"{name!r} cannot be the name of a profile: use letters, digits, '-', '_' and '.'"
            )
        return self._folder / "profiles" / f"{name}.properties"

    def read(self, name: str) -> dict[str, str]:
        path = self.path_of(name)
        try:
            properties = load_properties(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            guess = did_you_mean(name, self.names()) or " `moldau profile list` lists them."
            raise Failure(f"there is no profile {name}.{guess}") from None
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror}") from None
        except (ConfigError, UnicodeDecodeError) as error:
            raise Failure(f"{path} is not a properties file: {error}") from None
        if not properties.get("bootstrap.servers", "").strip():
            raise Failure(f"{path} has no bootstrap.servers. Add bootstrap.servers=HOST:PORT")
        return properties

    def write(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self.path_of(name)
        self._write(path, dump_properties(properties))
        return path

    def delete(self, name: str) -> None:
        if name not in self.names():
            self.read(name)
        try:
            self.path_of(name).unlink()
            if self.current() == name:
                self._in_use.unlink()
        except OSError as error:
            raise Failure(f"cannot delete {self.path_of(name)}: {error.strerror}") from None

    def use(self, name: str) -> None:
        self.read(name)
        self._write(self._in_use, f"{name}\n")

    def current(self) -> str | None:
        """The profile that `use` chose last."""
        try:
            return self._in_use.read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"cannot read {self._in_use}: {error}") from None

    def _write(self, path: Path, text: str) -> None:
        partial = path.with_name(f".{path.name}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)
            partial.replace(path)
        except OSError as error:
            raise Failure(f"cannot write {path}: {error.strerror}") from None
