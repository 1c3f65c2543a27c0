"""`moldau up` and what belongs to it: the whole platform on this machine, by one command."""
