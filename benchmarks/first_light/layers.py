"""Leaves out one layer of the sandbox in a pool's workers, to find the one that refuses a GPU's driver something.

The workers' parent imports this module (`here.LightPool`). Imports only the standard library and the sandbox.
"""

import os
import resource

from kernel_scientist.sandbox import landlock, seccomp

VARIABLE = "FIRST_LIGHT_WITHOUT"
"""Environment variable of the workers' parent: the layer to leave out."""
EVERY = "all"
"""No sandbox at all (`harness.sandbox: none`, and no sealing), and no stopped threads."""
BUBBLEWRAP, STOPPING = "bubblewrap", "stopped threads"
"""What the evaluator does: namespaces around the workers' parent; stopping a worker's other threads while its main
thread copies outputs, which a GPU's driver has to bear."""
FUNCTIONS = {
    "system calls": (seccomp, "_install_filter"),
    "landlock": (landlock, "restrict"),
    "limits": (resource, "setrlimit"),
    "capabilities": (seccomp, "drop_capabilities"),
}
"""By layer: the function that sets it up."""
LAYERS = (*FUNCTIONS, STOPPING, BUBBLEWRAP)


def leave_out(layer: str) -> None:
    """Let the function that sets up a layer do nothing, in this process and those that it forks."""
    for name in FUNCTIONS if layer == EVERY else FUNCTIONS.keys() & {layer}:
        setattr(*FUNCTIONS[name], _nothing)


def _nothing(*_: object, **__: object) -> list[str]:
    return []


leave_out(os.environ.get(VARIABLE, ""))
