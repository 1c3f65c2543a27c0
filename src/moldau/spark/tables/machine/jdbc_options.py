"""Which options of a database's table go together."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.spark.tables.errors import OptionError
from moldau.spark.tables.machine.option_values import Value

__all__ = ["check_jdbc"]


def check_jdbc(options: Mapping[str, Value], role: str, where: str) -> None:
    """Raises OptionError."""
    address = str(options["url"])
    if not address.startswith("jdbc:"):
        raise OptionError(
            f"{where}: {address.split('?')[0]!r} is no JDBC address",
            "Write jdbc:postgresql://host/database, jdbc:mariadb://host/database, "
            "jdbc:sqlite:file.db, or another jdbc:... with its driver",
        )
    if role == "sink":
        if options.get("onError") == "dead_letter":
            for name in ("deadLetterTopic", "kafka.bootstrap.servers"):
                if name not in options:
                    raise OptionError(f"{where}: 'onError: dead_letter' also needs {name!r}")
        return
    if ("table" in options) == ("query" in options):
        raise OptionError(f"{where}: give either 'table' or 'query'")
    bounds = ("partitionColumn", "lowerBound", "upperBound", "numPartitions")
    given = [name for name in bounds if name in options]
    if given and len(given) < len(bounds):
        missing = ", ".join(sorted(set(bounds) - set(given)))
        raise OptionError(
            f"{where}: {', '.join(given)} without {missing}",
            "The four cut the table into parts only together",
        )
    mode = str(options.get("mode", ""))
    for column in ("incrementing", "timestamp"):
        name = f"{column}.column.name"
        if column in mode.split("+") and name not in options:
            raise OptionError(f"{where}: 'mode: {mode}' also needs {name!r}")
        if name in options and column not in mode.split("+"):
            raise OptionError(
                f"{where}: {name!r} has no meaning with mode {mode!r}",
                "Modes are incrementing, timestamp and timestamp+incrementing",
            )
