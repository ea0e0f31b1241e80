"""How an untrusted kernel is checked and timed."""
