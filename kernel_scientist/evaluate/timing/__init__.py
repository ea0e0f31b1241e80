"""How fast is a kernel: schedule, samples, statistics."""
