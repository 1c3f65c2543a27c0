"""`python -m orders.demo`: everything at once, watched for a minute, checked at the end."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from orders.demo.run import Demo, Options
from orders.demo.stage import StageError
from orders.generator import Settings

DATABASE_VARIABLE = "ORDERS_DATABASE"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m orders.demo",
        description="run the whole flow, show it while it runs, check what has become of it",
    )
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="how long orders are made (default 60)")
    add("--rate", type=float, default=50.0, help="orders per second (default 50)")
    add("--disorder", type=float, default=0.1,
        help="share of orders that come late, 0 to 1; half as many are posted twice")  # fmt: skip
    add("--seed", type=int, default=1, help="the same seed makes the same orders (default 1)")
    add("--bootstrap-server", metavar="HOST:PORT",
        help="a cluster to use, as Apache Kafka; without it a broker is started")  # fmt: skip
    add("--without-spark", action="store_true", help="services only: up in seconds")
    add("--connector", choices=["auto", "moldau", "kafka"], default="auto",
        help="what the pipelines read and write topics with (default auto)")  # fmt: skip
    add("--database", metavar="URL", default=os.environ.get(DATABASE_VARIABLE),
        help="postgresql://user:password@host/name to load orders into, its table orders is made "
        f"again (default ${DATABASE_VARIABLE}, else a SQLite file)")  # fmt: skip
    add("--chaos", type=float, metavar="SECONDS",
        help="kill a service every so often, in the middle of its work")  # fmt: skip
    add("--folder", type=Path, help="where data and logs go and stay (default: a temporary one)")
    add("--plain", action="store_true", help="lines instead of the live view")
    return parser


def _options(parser: argparse.ArgumentParser, folder: Path) -> Options:
    given = parser.parse_args()
    if given.seconds <= 0:
        parser.error(f"--seconds {given.seconds}: more than 0 is needed")
    if given.chaos is not None and given.chaos < 0.5:
        parser.error(f"--chaos {given.chaos}: at least 0.5 seconds are needed between two kills")
    try:
        # Ids of their own, so that the demo can run twice on the same cluster.
        run = f"r{round(time.time()) % 10**8:08d}"
        settings = Settings(rate=given.rate, disorder=given.disorder, seed=given.seed, run=run)
    except ValueError as error:
        parser.error(str(error))
    return Options(
        settings=settings,
        seconds=given.seconds,
        folder=folder,
        bootstrap_servers=given.bootstrap_server,
        with_spark=not given.without_spark,
        connector=given.connector,
        database=given.database,
        chaos_s=given.chaos,
        plain=given.plain,
    )


def main() -> int:
    parser = _parser()
    kept: Path | None = parser.parse_args().folder
    folder = (kept or Path(tempfile.mkdtemp(prefix="orders-demo-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=folder / "demo.log", level=logging.INFO)
    # A kill is as polite as Ctrl-C: children are ended in either case.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Into a file or a pipe nothing has to be folded.
    console = Console(width=None if sys.stdout.isatty() else 120)
    passed = False
    try:
        passed = Demo(_options(parser, folder), console).run()
        return 0 if passed else 1
    except StageError as error:
        console.print(f"[bold red]{error}")
        return 1
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has been ended")
        return 130
    finally:
        if kept is None and passed:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"data and logs: {folder}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
