"""Is a kernel right: inputs, comparison, integrity of outputs, policy."""
