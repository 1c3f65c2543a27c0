"""Decisions of the Control Center; pure."""
