"""Pure parts: errors, links, formats, resources and the reading of bodies."""
