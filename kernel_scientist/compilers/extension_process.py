"""The confined process that builds an extension with torch: `python -m kernel_scientist.compilers.extension_process`.

It reads `request.json` from its folder and leaves the shared object there, without importing it. All messages go to
standard output. Exit status 1: the build failed.
"""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from kernel_scientist.sandbox import seccomp


def main() -> int:
    """Build the requested extension; return the exit code."""
    request: dict[str, Any] = json.loads(Path("request.json").read_text())
    os.environ |= request["environment"]
    logging.disable()  # suppresses torch's warning about a missing GPU
    seccomp.confine_builder(programs=True)
    from torch.utils import cpp_extension

    cpp_extension._import_module_from_library = _do_not_import  # pyright: ignore[reportPrivateUsage]
    try:
        cpp_extension.load_inline(**request["arguments"], build_directory=str(Path.cwd()), verbose=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


def _do_not_import(*_: Any) -> None:
    """Replace torch's import of the built module: untrusted code runs in workers only."""


if __name__ == "__main__":
    sys.exit(main())
