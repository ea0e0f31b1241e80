"""Isolation of untrusted processes: namespaces, Landlock, seccomp, limits, locks."""
