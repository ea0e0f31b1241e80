"""The texts that MLflow shows beside runs and models: a kernel's description, a champion's model card."""

from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict

MOST = 1000
"""Most characters of one part."""


def kernel(trial: Trial, population: Population, base_link: str, flow_link: str) -> str:
    """Return a kernel's description: links to its base and its Prefect run, hypothesis, outcome.

    `base_link`, `flow_link`: addresses; empty if there is none.
    """
    made, experiment = trial.kernel, trial.kernel.experiment
    base = f"[{made.base}]({base_link})" if base_link else made.base
    links = [f"Base {base}"] if base else []
    links += [f"[Prefect run]({flow_link})"] if flow_link else []
    if experiment:
        low, high = experiment.uplift
        why = f"**Hypothesis.** {experiment.description[:MOST]} Predicted uplift: {low:+g} to {high:+g} %."
    else:
        why = f"**Seed.** {made.report[:MOST]}"
    # links first: MLflow folds a long text and lays a gradient over its end
    return "\n\n".join(filter(None, (", ".join(links), why, f"**Outcome.** {outcome(trial, population)}")))


def outcome(trial: Trial, population: Population) -> str:
    """Return what came of a kernel, in one or two sentences."""
    evaluation, base = trial.evaluation, trial.kernel.base
    if evaluation.verdict is not Verdict.OK:
        return f"{evaluation.verdict.value}: {evaluation.reason[:MOST]}"
    if evaluation.by_model:
        shown = f"{100 * score(trial):.3g} % of the roofline, {evaluation.predicted_us or 0:.5g} us, predicted."
    elif speedup := evaluation.speedup_over(REFERENCE):
        interval = f" [{speedup.interval[0]:.4g}, {speedup.interval[1]:.4g}]" if speedup.resolved else ""
        shown = f"{speedup.ratio:.4g}x the reference's speed{interval}, {evaluation.geomean_us or 0:.5g} us."
    else:
        return "correct, not timed"
    if (uplift := population.uplift(trial)) is not None:
        shown += f" {uplift:+.1f} % over {base}."
    beaten = [s.against for s in evaluation.speedups if s.faster and s.against != REFERENCE]
    return shown + (f" Faster than {', '.join(beaten)} by the test." if beaten else "")


def model_card(model: str, champion: Kernel, campaign: str, confirmed: str) -> str:
    """Return the model card of a registered champion. `confirmed`: how it was confirmed, in a sentence."""
    title = champion.experiment.title if champion.experiment else champion.report or "a seed"
    needs = "torch and gpu-kernel-scientist, with g++" if champion.language == "cpp" else "torch and its compiler"
    return f"""# {model}: {champion.name}

{title}. {confirmed}

| | |
|---|---|
| campaign | {campaign} |
| language | {champion.language} |
| sha256 of the source | `{champion.digest}` |
| needs | {needs} |

As an MLflow model; `data` is what the problem's `generate_input` returns:

```python
import mlflow
model = mlflow.pyfunc.load_model("models:/{model}@champion")
output = model.predict(data)
```

As a plain Python file:

```python
import mlflow, runpy
folder = mlflow.artifacts.download_artifacts("models:/{model}@champion")
output = runpy.run_path(f"{{folder}}/kernel.py")["custom_kernel"](data)
```
"""
