"""Options that the commands of a platform share."""

from __future__ import annotations

from moldau.cli.platform.folder import DEFAULT_PLATFORM, PlatformFolder
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import Failure

__all__ = ["add_data", "require_platform", "running_status"]


def add_data(parser: Parser) -> None:
    parser.add_argument(
        "--data",
        metavar="DIR",
        help=f"directory of the platform (default: ./{DEFAULT_PLATFORM}, or that of the only one "
        "that runs)",
    )


def require_platform(folder: PlatformFolder) -> None:
    if not folder.exists():
        raise Failure(f"{folder.path} has no platform. `moldau up` starts one")


def running_status(folder: PlatformFolder) -> dict[str, object]:
    """The state of a platform that must be running."""
    require_platform(folder)
    status = folder.status()
    if status is None:
        raise Failure(f"the platform in {folder.path} is not running. `moldau up` starts it")
    return status
