"""The whole flow on one machine, watched while it runs and checked when it is over."""
