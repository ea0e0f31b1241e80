"""The targets: one module each, with `require` and `opened`. `factory` imports the one that an address names."""
