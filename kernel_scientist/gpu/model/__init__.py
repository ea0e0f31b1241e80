"""A GPU's time, predicted."""
