"""The `moldau` command and its subcommands. Only this package reads argv."""
