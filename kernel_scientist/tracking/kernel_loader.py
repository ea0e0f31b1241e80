"""Loads a champion for `mlflow.pyfunc.load_model`. A copy of this file lies in the model, which needs nothing else."""

import runpy
from typing import Any


class ChampionModel:
    """A kernel as an MLflow model."""

    def __init__(self, path: str) -> None:
        self.custom_kernel = runpy.run_path(path)["custom_kernel"]

    def predict(self, data: Any, params: Any = None) -> Any:
        """Return the kernel's output for what the problem's `generate_input` returns."""
        return self.custom_kernel(data)


def _load_pyfunc(path: str) -> ChampionModel:  # pyright: ignore[reportUnusedFunction]  # MLflow calls it by this name
    return ChampionModel(path)
