"""Reports: JSON summaries, tables, pages, training data."""
