"""Sources, their compilation, and facts from their object code."""
