"""`python -m kernel_scientist` and `kernel-scientist`: the command line as a process."""

import atexit
import gc
import os
import sys

from kernel_scientist.cli import main

YOUNG = 50_000
"""New objects after which Python's garbage collector runs: with its 700 it takes a tenth of the time of imports."""


def run() -> None:
    """Run the command line, then end this process without taking down its libraries, which takes over half a second.

    Other handlers of `atexit` run, and threads are waited for: the handler registered first is called last.
    """
    code = 1

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)
    gc.set_threshold(YOUNG)
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise


if __name__ == "__main__":
    run()
