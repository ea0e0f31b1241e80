"""The screen: reads a kernel's source before it runs."""
