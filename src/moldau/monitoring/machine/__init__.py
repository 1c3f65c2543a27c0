"""Pure decisions of monitoring."""
