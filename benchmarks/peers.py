"""How many programs an hour OpenEvolve and ShinkaEvolve make on the same scripted endpoint: one model call a program.

    python -m benchmarks.peers

Each is installed from the package index into an environment of its own, and used through its own interface with eight
workers; prompts of its own, whole programs as replies, nothing but one call and one evaluation of 0.2 s a program.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import endpoint
from kernel_scientist.records import environment

PACKAGES = {"openevolve": "openevolve==0.4.0", "shinkaevolve": "shinka-evolve==0.0.7"}
PROGRAM = "# EVOLVE-BLOCK-START\nVALUE = 0\n# EVOLVE-BLOCK-END\n"
NOTE = """
import time
time.sleep(0.2)
print(time.time(), VALUE, file=open({log!r}, "a"))
"""
"""What an evaluation does: it takes its time, and notes when it ends, and of which program."""
OPENEVOLVE = """
from openevolve import run_evolution
from openevolve.config import Config, LLMModelConfig

config = Config(max_iterations=100_000, checkpoint_interval=10_000, log_level="ERROR", diff_based_evolution=False)
config.language = "python"
config.llm.models = [LLMModelConfig(name="scripted", api_base={address!r}, api_key="none", timeout=60, retries=0,
                                    retry_delay=1, max_tokens=2000, temperature=0.7, weight=1.0)]
config.evaluator.parallel_evaluations = 8
config.evaluator.cascade_evaluation = False
run_evolution("program.py", "evaluator.py", config=config, output_dir="out", cleanup=False)
"""
OPENEVOLVE_EVALUATOR = """
def evaluate(path):
    scope = {{}}
    exec(open(path).read(), scope)
    exec(NOTE, scope)
    return {{"combined_score": float(scope["VALUE"])}}


NOTE = {note!r}
"""
SHINKA = """
import os
os.cpu_count = lambda: 32  # it allows itself half as many calls in flight as there are cores

from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

evolution = EvolutionConfig(
    num_generations=100_000, llm_models=["local/scripted@" + {address!r}], llm_dynamic_selection=None,
    patch_types=["full"], patch_type_probs=[1.0], meta_rec_interval=None, embedding_model=None, max_novelty_attempts=1,
    max_patch_resamples=1, init_program_path="program.py", results_dir="out",
)
job = LocalJobConfig(eval_program_path="evaluator.py")
ShinkaEvolveRunner(evo_config=evolution, job_config=job, db_config=DatabaseConfig(), verbose=False,
                   max_evaluation_jobs=12, max_proposal_jobs=8).run()
"""
SHINKA_EVALUATOR = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--program_path")
parser.add_argument("--results_dir")
options = parser.parse_args()
scope = {{}}
exec(open(options.program_path).read(), scope)
exec({note!r}, scope)
os.makedirs(options.results_dir, exist_ok=True)
json.dump({{"correct": True, "error": None}}, open(options.results_dir + "/correct.json", "w"))
json.dump({{"combined_score": float(scope["VALUE"])}}, open(options.results_dir + "/metrics.json", "w"))
"""
SCRIPTS = {"openevolve": (OPENEVOLVE, OPENEVOLVE_EVALUATOR), "shinkaevolve": (SHINKA, SHINKA_EVALUATOR)}


def measure(seconds: float = 60.0) -> dict[str, dict[str, Any]]:
    """Return programs an hour per system, after a warm-up; or why it could not be installed."""
    found: dict[str, dict[str, Any]] = {}
    for name, package in PACKAGES.items():
        try:
            python = _installed(name, package)
        except subprocess.CalledProcessError as error:
            found[name] = {"why": f"cannot install {package}: {error.stderr[-300:]}"}
            continue
        found[name] = {"package": package, **_run(name, python, seconds)}
    return found


def _installed(name: str, package: str) -> Path:
    """Return the interpreter of a system's own environment, which is made unless it exists."""
    folder = environment.cache_folder() / "peers" / package
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, text=True)
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True, capture_output=True, text=True)
        (folder / "installed").touch()
    return python


def _run(name: str, python: Path, seconds: float) -> dict[str, Any]:
    """Run a system for some seconds after its first evaluations; count the evaluations."""
    with tempfile.TemporaryDirectory() as where, endpoint.serving(2.0) as address:
        folder, log = Path(where), str(Path(where) / "evaluations.txt")
        script, evaluator = SCRIPTS[name]
        (folder / "program.py").write_text(PROGRAM)
        (folder / "evaluator.py").write_text(evaluator.format(note=NOTE.format(log=log)))
        (folder / "run.py").write_text(script.format(address=address))
        process = subprocess.Popen(
            [python.absolute(), "run.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": ""},
            stdout=subprocess.DEVNULL,
            stderr=(folder / "errors.txt").open("w"),
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 120
            while len(_times(log)) < 20 and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.5)
            time.sleep(seconds)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        times = _times(log)[20:]  # the first ones are those of the start
        if len(times) < 2:
            return {"why": (folder / "errors.txt").read_text()[-500:]}
    took_s = times[-1] - times[0]
    return {
        "kernels_per_hour": round(3600 * (len(times) - 1) / took_s),
        "kernels": len(times),
        "seconds": round(took_s),
    }


def _times(log: str) -> list[float]:
    """Return when each program was evaluated for the first time, in order."""
    lines = [line.split() for line in Path(log).read_text().splitlines()] if Path(log).exists() else []
    first = {value: float(moment) for moment, value in reversed(lines)}
    return sorted(first.values())


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
