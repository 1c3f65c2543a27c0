"""The base of every HTTP service: routes, negotiation, authentication, limits, TLS, documents."""
