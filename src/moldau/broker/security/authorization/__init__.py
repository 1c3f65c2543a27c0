"""What a client may do: the authorizer, and the check of every request."""
