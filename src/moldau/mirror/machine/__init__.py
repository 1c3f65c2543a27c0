"""What a mirror decides: names, formats, settings, plans and offset translation. Pure."""
