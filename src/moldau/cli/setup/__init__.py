"""Commands for this installation: diagnosis, profiles, completion."""
