"""The roles played by a language model: client, cache, budget, parsing."""
