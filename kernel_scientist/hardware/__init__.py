"""Hardware: this CPU, a table of machines, the roofline."""
