"""Run a command that dies with the process that started it, however that one ends.

python -m kernel_scientist.sandbox.leash COMMAND [ARGUMENT...]
"""

import os
import sys

from kernel_scientist.sandbox.seccomp import die_with_parent


def main() -> None:
    """Ask for the parent's death to be ours, then become the command."""
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:
        sys.exit(1)  # it died in between
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
