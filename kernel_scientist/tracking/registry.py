"""Confirmed champions in the Model Registry: loadable by `mlflow.pyfunc.load_model`, with a model card."""

import shutil
from pathlib import Path
from typing import Any

from kernel_scientist.records.kernel import Kernel
from kernel_scientist.tracking import kernel_loader

ALIAS = "champion"
SOURCE = "source"
"""Folder of a run's artifacts that becomes the model; it holds kernel.py already."""


def write_model(folder: Path, card: str) -> None:
    """Make a folder with a kernel.py an MLflow model."""
    from mlflow import pyfunc
    from mlflow.models import Model

    loader = Path(kernel_loader.__file__)
    (folder / "code").mkdir(parents=True, exist_ok=True)
    shutil.copy(loader, folder / "code" / loader.name)
    (folder / "README.md").write_text(card)
    model = Model()
    pyfunc.add_to_model(model, loader_module=loader.stem, data="kernel.py", code="code")
    model.save(str(folder / "MLmodel"))


def register(client: Any, run: Any, champion: Kernel, model: str, campaign: str, card: str) -> str:
    """Register a run's `source` folder as a version of a model; return the version."""
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(model)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    source = f"{run.info.artifact_uri}/{SOURCE}"
    tags = {"kernel": champion.name, "digest": champion.digest, "campaign": campaign}
    version = client.create_model_version(model, source, run.info.run_id, tags=tags, description=card)
    return str(version.version)


def make_standing(client: Any, model: str, version: str, card: str) -> None:
    """Give a version the alias `champion`, which an earlier one may have, and the model its card."""
    client.set_registered_model_alias(model, ALIAS, version)
    client.update_registered_model(model, description=card)
