"""Stories of group members: written once, acted by each client through a small adapter."""
