"""Selection of the next kernel to change."""
