"""A kernel of which only some programs run: for grids that would take an interpreter minutes."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_scientist.inspection.addresses import Launch


class Sample:
    """Stands for a kernel's function in a launch: runs evenly spaced programs, the first and the last included."""

    def __init__(self, function: Callable[..., Any], launch: Launch, most: int) -> None:
        self.function, self._launch, self._most = function, launch, most
        self._chosen: set[int] | None = None
        self.__name__ = function.__name__
        self.__signature__ = inspect.signature(function)
        self.__globals__ = function.__globals__
        self.__annotations__ = function.__annotations__
        self.__code__ = function.__code__

    def __call__(self, **kwargs: Any) -> None:
        """Run the program that is at its turn, if it was chosen."""
        run = self._launch
        if self._chosen is None:
            spaced = np.linspace(0, run.total - 1, min(self._most, run.total))
            self._chosen = {run.base + 1 + round(float(i)) for i in spaced}
        if run.me in self._chosen:
            self.function(**kwargs)
        else:
            run.run -= 1
