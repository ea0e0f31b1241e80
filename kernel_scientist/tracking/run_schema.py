"""What MLflow's runs hold, name by name. docs/reference/mlflow.md is made of it; campaigns in tests are held to it.

`{...}` in a name stands for any text. What MLflow itself adds (`mlflow.user`, ...) is left out.
"""

import re
from collections.abc import Iterable, Mapping

from kernel_scientist.tracking import snapshots
from kernel_scientist.tracking.artifacts import EVALUATION, EXPERIMENT, LISTS, SOURCE

Names = dict[str, str]
"""Meaning by name."""

KERNEL: Mapping[str, Names] = {
    "tags": {
        "kind": "`kernel`",
        "campaign": "the campaign's id",
        "kernel": "the kernel's name, such as `k00012`",
        "mlflow.parentRunId": "the campaign's run",
        "mlflow.runName": "name and title of the experiment",
        "mlflow.note.content": "the description that MLflow shows: hypothesis, outcome, links to base and Prefect run",
        "verdict": "the verdict, such as `ok` or `incorrect`",
        "reason": "why, in a sentence; absent if there is nothing to say",
        "score": "`measured`, `predicted` or `none`: by what the kernel is ranked",
        "champion": "`yes`: the campaign's champion; absent otherwise",
        "language": "`cpp`, `triton`, `hip` or `cuda`",
        "generation": "number of the generation; 0 for seeds",
        "base": "the kernel that the experiment changed; absent for seeds",
        "reference": "the kernel that the experiment was contrasted with",
        "tuned_from": "the kernel whose tunables were searched; absent unless tuned",
        "digest": "sha256 of the source",
        "report": "the Writer's report on its changes",
        "sandbox": "sandbox layers in force",
        "coverage": "what an interpreted check executed",
        "calibration": "what the model's constants rest on; only with a predicted time",
    },
    "params": {
        "problem": "the problem",
        "target": "the device: `cpu`, or the GPU's name",
        "language": "as the tag",
        "generation": "as the tag",
        "base": "as the tag; `-` for seeds",
        "reference": "as the tag; `-` for seeds",
        "experiment": "the experiment's title up to the first colon; `seed` for seeds",
        "innovation": "0 to 100, by the Designer",
        "predicted_uplift_min": "least predicted gain in percent of speed",
        "predicted_uplift_max": "largest predicted gain in percent of speed",
        "model.{role}": "the agent that played this role: a model's name or `playbook`",
        "prompt.{role}": "digest of the prompt's templates",
        "tunable.{name}": "value of a tunable that the source declares",
    },
    "metrics": {
        "speedup": "times as fast as the reference: geometric mean over the cases",
        "speedup_low": "lower end of its interval",
        "speedup_high": "upper end of its interval",
        "log2_speedup": "binary logarithm of the speedup",
        "geomean_us": "geometric mean of the measured times",
        "reference_geomean_us": "the same of the reference, in the same run",
        "roofline_fraction": "roofline floor divided by time, geometric mean",
        "measured_uplift": "gain over the base in percent of speed",
        "time_us/{case}": "measured time per case",
        "reference_us/{case}": "the reference's time per case, in the same run",
        "predicted_geomean_us": "geometric mean of the times predicted by the performance model",
        "predicted_roofline_fraction": "floor divided by predicted time",
        "predicted_uplift": "predicted gain over the base in percent of speed; only on model targets",
        "predicted_us/{case}": "predicted time per case",
        "profiler/{figure}": "a figure from a GPU's hardware counters (`Figures` in [records.md](records.md))",
        "gpu/{resource}": "registers, spills, LDS: the largest of the kernel's code objects; occupancy: the lowest",
        "instructions/{class}": "instructions of a C++ kernel by class; `bytes`: size of the code",
        "seconds/{step}": "wall time of a step, such as `compile`, `check`, `time`; `compiler`: the compiler alone",
        "number": "how many kernels the campaign has with this one",
        "llm/{figure}": "model calls for this kernel: `usd`, `calls`, `tokens`, `unreadable` replies, `repairs`",
    },
    "artifacts": {
        SOURCE: "the source",
        "source/MLmodel": "with the next two: the registered champion as an MLflow model",
        "source/README.md": "its model card",
        "source/code/kernel_loader.py": "loads it",
        EVALUATION: "`Evaluation`",
        EXPERIMENT: "`Experiment`; absent for seeds",
        "base.diff": "difference from the base",
        "compiler.txt": "the compiler's messages",
        "assembly/{kernel}.s": "GPU assembly per code object, with source lines",
        "counters.json": "list of `Counters`",
        "exchanges/{number}-{role}.md": "a prompt and its reply",
        LISTS["llm_calls"][0]: "list of `LlmCall`",
        LISTS["attempts"][0]: "list of `Attempt`: versions that were repaired",
        LISTS["tries"][0]: "list of `Try`: configurations that were tried",
        LISTS["authors"][0]: "`Author` by role",
    },
}
"""A kernel's run. Its start and end are those of the work on the kernel."""

CAMPAIGN: Mapping[str, Names] = {
    "tags": {
        "kind": "`campaign`",
        "campaign": "the campaign's id",
        "mlflow.runName": "the campaign's id",
        "problem_digest": "digest of the problem's folder; a campaign is resumed only on the same",
        "owner": "host and process that run the campaign",
        "suite": "the suite that it belongs to, if it does: the suite's name and a random part",
        "prefect_run": "address of the Prefect flow run",
        "champion": "name of the champion; empty without one",
        "promoted": "`true` if the champion became the standing champion",
        "promotion": "why it did or did not",
    },
    "params": {"{parameter}": "every parameter of [params.yaml](params.md), by its full name"},
    "metrics": {
        "kernels": "kernels so far",
        "elapsed_s": "wall time so far",
        "best_speedup": "speedup of the incumbent; a curve over the kernels, as are the next four",
        "best_geomean_us": "its time",
        "best_reference_geomean_us": "the reference's time in its run",
        "predicted_best_roofline_fraction": "on model targets: floor divided by predicted time of the best kernel",
        "predicted_best_geomean_us": "on model targets: its predicted time",
        "final_geomean_us.{kernel}": "time of a finalist in the final",
        "final_speedup.{kernel}": "its speedup over the reference in the final",
        "confirmed_geomean_us": "the champion's time in the confirmation",
        "confirmed_geomean_us.{kernel}": "time of another source in the confirmation",
        "confirmed_speedup_over_{kernel}": "the quotient of the two",
        "held_out_geomean_us": "the champion's time on held-out cases",
        "held_out_geomean_us.{kernel}": "time of another source there",
        "held_out_speedup_over_{kernel}": "the quotient of the two",
        "llm.usd{of}": "cost of model calls: in total, `.role`, `.model`, `.role.model`",
        "llm.calls{of}": "number of model calls, the same way",
        "llm.tokens{of}": "tokens of prompts and replies, the same way",
        "llm.unreadable_rate{of}": "share of complete replies that could not be parsed, the same way",
        "llm.truncated": "calls whose stream ended within the reply",
    },
    "artifacts": {
        "findings.json": "findings of the Distiller",
        "final.json": "times of the finalists",
        "confirmation.json": "`Evaluation` of the champion's confirmation",
        "validation.json": "what `validate --json` says about the champion",
        "report.html": "the campaign's page",
        f"{snapshots.FOLDER}/{{first}}-{{last}}.jsonl": "kernels in bulk, so that a resume reads few files",
    },
}
"""A campaign's run, the parent of its kernels' runs. Model calls are traces of the run of the kernel they led to."""

SUITE: Mapping[str, Names] = {
    "tags": {"suite": "the suite's name"},
    "metrics": {
        "problems": "problems of the suite",
        "refused": "problems without a campaign",
        "usd": "cost of model calls",
        "fast_{p}": "share of the problems with a correct kernel that is more than p times as fast as the reference",
        "fast_{p}_over_torch_compile": "the same over the reference compiled by torch.compile",
    },
    "artifacts": {"suite.json": "what `suite --json` prints"},
}
"""A suite's run, in experiment `suites`."""


def unknown(kind: Mapping[str, Names], group: str, names: Iterable[str]) -> list[str]:
    """Return the names that the schema of a kind of run does not describe; MLflow's own tags count as known."""
    patterns = [re.compile(re.sub(r"\\\{.*?\\\}", ".*", re.escape(name))) for name in kind[group]]
    mine = (name for name in names if not name.startswith("mlflow."))
    return sorted(name for name in mine if not any(pattern.fullmatch(name) for pattern in patterns))
