"""Listeners, frames and dispatch."""
