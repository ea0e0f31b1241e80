#!POPCORN leaderboard copy
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    source, target = data
    target[...] = source
    return target
