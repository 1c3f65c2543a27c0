"""Pure parts: media types, routes, the OpenAPI document, listeners, errors."""
