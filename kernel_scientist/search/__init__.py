"""Search: selection of the next base kernel, prescreening, tunable values."""
