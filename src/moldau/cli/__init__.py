"""The command line: `moldau start`, `moldau storage` and the rest. Only here is argv read."""
