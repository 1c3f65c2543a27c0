"""Guesses what a misspelt name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest_name", "did_you_mean"]


def closest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None when nothing is near."""
    # Imported here: difflib is only needed once something has already gone wrong.
    from difflib import get_close_matches

    matches = get_close_matches(name, list(candidates), n=1, cutoff=0.75)
    return matches[0] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A sentence to append to an error, empty when there is no good guess."""
    guess = closest_name(name, candidates)
    return f" Did you mean {guess}?" if guess else ""
