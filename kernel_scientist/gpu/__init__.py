"""GPU kernels without their GPU: launches captured, code objects read, memory watched, traffic counted."""
