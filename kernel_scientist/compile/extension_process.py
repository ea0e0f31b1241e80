"""The confined process that builds an extension by torch's own means: `python -m ...languages.extension_process`.

In its folder lies `request.json`; torch's words, ninja's and the compilers' go to standard output, and the shared
object is left there. It is not imported here. Exit status 1: it could not be built.
"""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from kernel_scientist.sandbox import seccomp


def main() -> int:
    """Build what the request says; return the exit code."""
    request: dict[str, Any] = json.loads(Path("request.json").read_text())
    os.environ |= request["environment"]
    logging.disable()  # torch misses a GPU here, which is as it should be
    seccomp.confine_builder(programs=True)
    from torch.utils import cpp_extension

    cpp_extension._import_module_from_library = _left_alone  # pyright: ignore[reportPrivateUsage]
    try:
        cpp_extension.load_inline(**request["arguments"], build_directory=str(Path.cwd()), verbose=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


def _left_alone(*_: Any) -> None:
    """Do nothing with what was built: it is untrusted, and its place is a worker."""


if __name__ == "__main__":
    sys.exit(main())
