"""Pure decisions about security."""
