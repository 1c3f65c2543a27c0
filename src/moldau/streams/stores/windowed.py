"""Window stores, and those of sessions."""

from __future__ import annotations

from moldau.streams.stores._windows import WindowStore
from moldau.streams.stores.sessions import SessionStore
from moldau.streams.stores.with_headers import SessionStoreWithHeaders, WindowStoreWithHeaders

__all__ = ["SessionStore", "SessionStoreWithHeaders", "WindowStore", "WindowStoreWithHeaders"]
