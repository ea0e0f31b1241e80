"""Reading the machine code of GPUs."""
