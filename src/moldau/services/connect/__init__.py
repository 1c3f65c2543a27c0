"""Connect's worker as a service: REST, and the group that workers form."""
