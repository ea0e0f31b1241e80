"""The roles played by rules: no model and no key."""
