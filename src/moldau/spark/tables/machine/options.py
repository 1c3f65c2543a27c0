"""Which options each kind of table has, as a source and as a sink.

A declaration such as `{parquet: orders, partitionBy: [day]}` is checked here before Spark sees it:
unknown, missing and contradictory options are errors that name the option and what to do. Names
are Spark's (or Delta's, Iceberg's, Kafka Connect's where the option is theirs) and, as in Spark,
their case does not matter. `Options` always holds the canonical names and parsed values only.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moldau.spark.tables.errors import OptionError
from moldau.spark.tables.machine import option_values as values
from moldau.spark.tables.machine.formats import FORMATS, SINK, SOURCE
from moldau.spark.tables.machine.option_values import Parser, Value

KINDS = tuple(FORMATS)
FILE_KINDS = tuple(name for name, each in FORMATS.items() if each.is_files)


@dataclass(frozen=True, slots=True, repr=False)
class Options(Mapping[str, Value]):
    """Options of one source or sink that were found right, by their canonical names."""

    kind: str
    role: str
    given: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        # Addresses and options may hold secrets, and this may end up in a log.
        return f"Options({self.kind} {self.role}: {', '.join(self.given)})"

    @property
    def address(self) -> str:
        """The folder or the database's URL."""
        return str(self.given[FORMATS[self.kind].address])

    def text(self, name: str, default: str = "") -> str:
        return str(self.given.get(name, default))

    def number(self, name: str, default: int = 0) -> int:
        return int(str(self.given.get(name, default)))

    def flag(self, name: str) -> bool:
        return self.given.get(name) is True

    def names(self, name: str) -> tuple[str, ...]:
        value = self.given.get(name, ())
        return value if isinstance(value, tuple) else (str(value),)

    def prefixed(self, prefix: str) -> dict[str, str]:
        """The properties that are passed on to a library, without their prefix."""
        return {
            name.removeprefix(prefix): str(value)
            for name, value in self.given.items()
            if name.startswith(prefix)
        }

    def as_spark(self) -> dict[str, str]:
        """The same options as the texts that Spark carries."""
        return {name: _as_text(value) for name, value in self.given.items()}


def check_options(kind: str, role: str, options: Mapping[str, object]) -> Options:
    """The options, understood; `OptionError` says which one is wrong and what would be right.

    `options` is the mapping under `source:` or `sink:` as it is written: the folder or URL is the
    value of the kind's own name, or of `path` (`url` for JDBC).
    """
    spec = FORMATS.get(kind)
    if spec is None:
        raise OptionError(f"unknown kind of table {kind!r}", f"Known are {', '.join(KINDS)}")
    if role not in (SOURCE, SINK):
        raise OptionError(f"unknown role {role!r}", "A table is a source or a sink")
    known = spec.options(role)
    canonical = {name.lower(): name for name in known} | {kind: spec.address}
    found: dict[str, Value] = {}
    for written, value in options.items():
        name = canonical.get(written.lower())
        if name is None and written.lower().startswith(spec.passed_on):
            found[written] = values.any_text(value)
            continue
        if name is None:
            raise _unknown(kind, role, written, known)
        if name in found:
            raise OptionError(f"{kind} {role}: {name!r} is given twice")
        try:
            found[name] = known[name](value)
        except OptionError as error:
            raise OptionError(f"{kind} {role}: {written!r}: {error.message}") from None
    for name in (spec.address, *spec.required.get(role, ())):
        if name not in found:
            raise OptionError(f"{kind} {role}: {name!r} is missing", f"Write it as {spec.example}")
    checked = Options(kind, role, found)
    _check_combinations(checked)
    return checked


def _check_combinations(options: Options) -> None:
    where = f"{options.kind} {options.role}"
    if ("txnAppId" in options) != ("txnVersion" in options):
        raise OptionError(f"{where}: 'txnAppId' and 'txnVersion' name a batch only together")
    if "sequenceBy" in options and "upsert" not in options:
        raise OptionError(
            f"{where}: 'sequenceBy' orders the rows of one key, and there is no key",
            "Add upsert: [key columns]",
        )
    FORMATS[options.kind].check(options, options.role, where)
    if options.get("cleanSource") == "archive" and "sourceArchiveDir" not in options:
        raise OptionError(
            f"{where}: 'cleanSource: archive' does not say where to", "Add sourceArchiveDir: folder"
        )
    if "startingVersion" in options:
        _starting_version(options.text("startingVersion"), where)


def _starting_version(value: str, where: str) -> None:
    if value not in ("latest", "earliest") and not value.isdigit():
        raise OptionError(
            f"{where}: 'startingVersion': expected a version or latest, got {value!r}"
        )


def check_output_mode(options: Options, output_mode: str) -> str:
    """The output mode in Spark's spelling, if this sink can take such a query's rows."""
    mode = output_mode.lower()
    if mode not in ("append", "update", "complete"):
        raise OptionError(
            f"unknown output mode {output_mode!r}", "Spark's are append, update and complete"
        )
    if options.kind in FILE_KINDS and mode != "append":
        raise OptionError(
            f"a {options.kind} sink cannot take output mode {mode!r}: files are only added, "
            "never changed",
            "Use append with a watermark, so that results are written once they are final, or a "
            "delta, iceberg or jdbc sink with upsert: [keys]",
        )
    if mode == "update" and "upsert" not in options:
        raise OptionError(
            f"a {options.kind} sink needs a key to take output mode 'update': a result that "
            "changes would otherwise be there several times",
            "Add upsert: [key columns]",
        )
    if mode == "complete" and "upsert" in options:
        raise OptionError(
            "output mode 'complete' replaces the whole table, so upsert has no meaning",
            "Leave out upsert, or use output mode update",
        )
    return mode


def _unknown(kind: str, role: str, written: str, known: Mapping[str, Parser]) -> OptionError:
    near = difflib.get_close_matches(written.lower(), [name.lower() for name in known], n=1)
    meant = next((name for name in known if near and name.lower() == near[0]), "")
    return OptionError(
        f"{kind} {role}: unknown option {written!r}",
        f"Did you mean {meant!r}?" if meant else f"Known are {', '.join(known)}",
    )


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        # A name may have a comma in it.
        return json.dumps(list(value)) if any("," in name for name in value) else ",".join(value)
    return str(value)
