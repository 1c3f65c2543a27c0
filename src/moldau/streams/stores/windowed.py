"""Window stores, and those of sessions."""

from __future__ import annotations

from moldau.streams.stores._windows import WindowStore
from moldau.streams.stores.sessions import SessionStore

__all__ = ["SessionStore", "WindowStore"]
