"""Python imports this when it starts, from PYTHONPATH: it writes down every secret seed that is drawn."""

import os
import random
from pathlib import Path

_drawn = random.SystemRandom.randrange


def randrange(self: random.SystemRandom, *bounds: int) -> int:
    number = _drawn(self, *bounds)
    if number >= 1_000_000:  # smaller ones are sizes, and stand in any text by chance
        with Path(os.environ["SEEDS_FILE"]).open("a") as file:
            file.write(f"{number}\n")
    return number


random.SystemRandom.randrange = randrange  # type: ignore[method-assign]
