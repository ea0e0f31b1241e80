"""Confirmed champions in the Model Registry: loadable by `mlflow.pyfunc.load_model`, with a model card."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernel_scientist.records.kernel import Kernel
from kernel_scientist.tracking import kernel_loader

ALIAS = "champion"
SOURCE = "source"
"""Folder of a run's artifacts that becomes the model; it holds kernel.py already."""


def model_card(model: str, champion: Kernel, campaign: str, facts: Mapping[str, str], address: str) -> str:
    """Return the model card of a registered champion. `facts`: how much faster it is, on what, how it was confirmed.

    `address`: what MLflow loads it by.
    """
    title = champion.experiment.title if champion.experiment else champion.report or "a seed"
    known = "".join(f"| {name} | {text.replace('|', '/')} |\n" for name, text in facts.items())
    needs = "torch and gpu-kernel-scientist, with g++" if champion.language == "cpp" else "torch and its compiler"
    return f"""# {model}: {champion.name}

{title}.

| | |
|---|---|
{known}| campaign | {campaign} |
| language | {champion.language} |
| sha256 of the source | `{champion.digest}` |
| needs | {needs} |

As an MLflow model; `data` is what the problem's `generate_input` returns:

```python
import mlflow
model = mlflow.pyfunc.load_model("{address}")
output = model.predict(data)
```

As a plain Python file:

```python
import mlflow, runpy
folder = mlflow.artifacts.download_artifacts("{address}")
output = runpy.run_path(f"{{folder}}/kernel.py")["custom_kernel"](data)
```
"""


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


def create(make: Callable[..., object], *arguments: Any, **named: Any) -> None:
    """Create something in an MLflow store, unless it exists."""
    from mlflow.exceptions import MlflowException

    try:
        make(*arguments, **named)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def next_version(client: Any, model: str) -> int:
    """Return the number that the next version of a model will have."""
    return max((int(known.version) for known in client.search_model_versions(f"name = '{model}'")), default=0) + 1


def registered_version(client: Any, run: Any, model: str) -> str | None:
    """Return the version of a model that a run's kernel is; None if it is not registered."""
    known = client.search_model_versions(f"name = '{model}' and run_id = '{run.info.run_id}'")
    return str(known[0].version) if known else None


def register(
    client: Any, run: Any, champion: Kernel, model: str, campaign: str, card: str, facts: Mapping[str, str]
) -> str:
    """Register a run's `source` folder as a version of a model, unless it is one; return the version.

    `facts` become tags, their names with underscores.
    """
    create(client.create_registered_model, model)
    if known := registered_version(client, run, model):
        return known
    source = f"{run.info.artifact_uri}/{SOURCE}"
    tags = {"kernel": champion.name, "digest": champion.digest, "campaign": campaign}
    tags |= {name.replace(" ", "_"): text for name, text in facts.items()}
    version = client.create_model_version(model, source, run.info.run_id, tags=tags, description=card)
    return str(version.version)
