"""Forgeries of an archive of evidence: each changes statements and writes the digests of the files anew."""

import copy
import json
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from kernel_scientist.evidence.archive import MANIFEST, sha256
from kernel_scientist.records.kernel import digest, edits
from kernel_scientist.records.raw_samples import RawSamples, digest_of

Files = dict[str, Any]
"""An archive's files by name: JSON values, and sources as texts."""
Forgery = Callable[[Files], None]
KERNEL, BASE = "sources/k00002.py", "sources/k00001.py"
EVALUATION, SAMPLES, PROBLEM, LINEAGE = "evaluation.json", "samples.json", "problem.json", "lineage.json"
CONFIRMATION, VALIDATION, ENVIRONMENT = "confirmation_evidence.json", "validation.json", "environment.json"


def unpacked(archive: Path) -> Files:
    with zipfile.ZipFile(archive) as zipped:
        texts = {name: zipped.read(name).decode() for name in zipped.namelist()}
    return {name: json.loads(text) if name.endswith(".json") else text for name, text in texts.items()}


def packed(files: Files, path: Path, with_digests: bool = True) -> Path:
    contents = {name: value if isinstance(value, str) else json.dumps(value) for name, value in files.items()}
    manifest = json.loads(contents.pop(MANIFEST))
    if with_digests:
        manifest["files"] = {name: sha256(text.encode()) for name, text in contents.items()}
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in {MANIFEST: json.dumps(manifest), **contents}.items():
            zipped.writestr(name, text)
    return path


def changed(name: str, *place: str | int, to: Any = None, by: Callable[[Any], Any] | None = None) -> Forgery:
    """Change one value; `by` gets the old one."""

    def forge(files: Files) -> None:
        *outer, last = place
        value = files[name]
        for key in outer:
            value = value[key]
        value[last] = by(value[last]) if by else to

    return forge


def all_of(*forgeries: Forgery) -> Forgery:
    def forge(files: Files) -> None:
        for one in forgeries:
            one(files)

    return forge


def scaled(value: Any, by: float) -> Any:
    return [scaled(one, by) for one in value] if isinstance(value, list) else value * by


def half(value: Any) -> Any:
    return scaled(value, 0.5)


def without_last(value: list[Any]) -> list[Any]:
    return value[:-1]


def flipped(value: bool) -> bool:
    return not value


def other_digest(value: str) -> str:
    return digest(value)


def rows(samples: Any, source: str) -> Iterator[list[int]]:
    """The timed rows of a source, to be changed in place."""
    for one in samples["readings"]:
        if one["source"] == source:
            yield from (row for process in one["rows"] for block in process for row in block)


def clocks_halved(samples: Any, source: str, most: int | None = None) -> None:
    """Halve the clock readings of a source, or the first ones of them, and write their digest anew."""
    for row in islice(rows(samples, source), most):
        row[1], row[2] = row[1] // 2, row[2] // 2
    samples["digest"] = digest_of(RawSamples.model_validate(samples).readings)


def twice_as_fast(evaluation: Any) -> None:
    """Halve every time of the kernel and double every ratio: the evaluation is consistent in itself."""
    for timing in evaluation["timings"]:
        for name in ("time_us", "interval_us", "samples_us"):
            timing[name] = half(timing[name])
    for speedup in evaluation["speedups"]:
        for name in ("ratio", "interval"):
            speedup[name] = scaled(speedup[name], 2)
        for pair in speedup["cases"].values():
            pair["time_us"] = half(pair["time_us"])
            pair["interval"] = pair["interval"] and scaled(pair["interval"], 2)


def reference_twice_as_slow(files: Files) -> None:
    """Double the reference's times and the ratio over it, which stays their quotient."""
    speedup = files[EVALUATION]["speedups"][0]
    speedup["ratio"], speedup["interval"] = speedup["ratio"] * 2, scaled(speedup["interval"], 2)
    for pair in speedup["cases"].values():
        pair["against_us"] *= 2
        pair["interval"] = pair["interval"] and scaled(pair["interval"], 2)


def edited_source(files: Files) -> None:
    """Change the kernel's source, its digest and its difference from the base."""
    files[KERNEL] += "# edited\n"
    _consistent_lineage(files)


def edited_base(files: Files) -> None:
    files[BASE] = "# edited\n" + files[BASE]
    _consistent_lineage(files)


def swapped_kernel(files: Files) -> None:
    files[KERNEL], files[BASE] = files[BASE], files[KERNEL]
    _consistent_lineage(files)


def _consistent_lineage(files: Files) -> None:
    kernel, base = files[LINEAGE]["kernels"]
    kernel["digest"], base["digest"] = digest(files[KERNEL]), digest(files[BASE])
    kernel["diff"] = edits(files[BASE], files[KERNEL], "k00001", "k00002")
    files[VALIDATION]["digest"] = kernel["digest"]


def another_kernel_s_figures(files: Files) -> None:
    """Take the evaluation and the samples of the confirmation, which was longer."""
    confirmed = files[CONFIRMATION]["evaluation"]
    files[EVALUATION] = copy.deepcopy({**confirmed, "samples": None, "environment": files[EVALUATION]["environment"]})


def hidden_base(files: Files) -> None:
    """Pass the kernel off as a seed."""
    files[LINEAGE]["kernels"] = files[LINEAGE]["kernels"][:1]
    files[LINEAGE]["kernels"][0] |= {"base": None}
    del files[BASE]


def other_seed(files: Files) -> None:
    """Change the seed of a case wherever it is stated."""
    for cases in (files[SAMPLES]["cases"], files[CONFIRMATION]["evaluation"]["samples"]["cases"]):
        cases[0]["seed"] += 1
    files[PROBLEM]["benchmarks"][0]["case"]["seed"] += 1


def dropped_case(files: Files) -> None:
    """Leave out the last timed case in problem, samples and figures of the evaluation."""
    name = files[EVALUATION]["timings"].pop()["case"]
    files[EVALUATION]["clocks"].pop()
    files[SAMPLES]["cases"].pop()
    del files[SAMPLES]["problem"]["works"][name]
    files[SAMPLES]["readings"] = [one for one in files[SAMPLES]["readings"] if one["case"] != name]
    files[PROBLEM]["benchmarks"].pop()
    for speedup in files[EVALUATION]["speedups"]:
        del speedup["cases"][name]


def dropped_block(files: Files) -> None:
    """Leave out the last block of every source."""
    for one in files[SAMPLES]["readings"]:
        one["rows"] = [process[:-1] for process in one["rows"]]
    files[SAMPLES]["digest"] = digest_of(RawSamples.model_validate(files[SAMPLES]).readings)


def less_work(files: Files) -> None:
    """Halve the work of a case in problem and samples."""
    work = files[PROBLEM]["benchmarks"][0]["work"]
    work["bytes"] /= 2
    name = files[EVALUATION]["timings"][0]["case"]
    files[SAMPLES]["problem"]["works"][name]["bytes"] /= 2


def confirmed_twice_as_fast(files: Files) -> None:
    twice_as_fast(files[CONFIRMATION]["evaluation"])


def without_held_out(files: Files) -> None:
    """Leave out the held-out cases' times, ratios and samples in confirmation and validation."""
    files[CONFIRMATION] |= {"held_out": [], "held_out_speedups": [], "held_out_samples": None}
    files[VALIDATION]["held_out"] = {"cases": [], "speedups": []}
    other = files[CONFIRMATION]["baseline"]
    if files[CONFIRMATION]["confirmed"]:
        why = f"faster than {other} on the public cases; the problem has no held-out ones"
        files[CONFIRMATION]["reason"] = files[VALIDATION]["why"] = why


def invented_held_out(files: Files) -> None:
    """Invent ratios on the held-out cases, without times and samples, and deny that the problem has such cases."""
    files[PROBLEM]["held_out"] = []
    files[CONFIRMATION] |= {"held_out": [], "held_out_samples": None}
    for speedup in files[CONFIRMATION]["held_out_speedups"]:
        speedup["ratio"], speedup["interval"] = speedup["ratio"] * 2, scaled(speedup["interval"], 2)
        for pair in speedup["cases"].values():
            pair["against_us"] *= 2


def unnamed_source(files: Files) -> None:
    """Change the source, and leave its digest out wherever it was timed."""
    confirmed = files[CONFIRMATION]
    for samples in (files[SAMPLES], confirmed["evaluation"]["samples"], confirmed["held_out_samples"]):
        del samples["sources"]["k00002"]
    edited_source(files)


def one_more(files: Files) -> None:
    """Add 1 to the largest size of a timed case."""
    sizes = max((one["case"]["sizes"] for one in files[PROBLEM]["benchmarks"]), key=lambda sizes: sizes["size"])
    sizes["size"] += 1


def of_another_evaluator(files: Files) -> Files:
    """Return the same archive as if another version of the evaluator had written it."""
    evaluator = files[ENVIRONMENT]["evaluator"]
    text, other = json.dumps(files), digest(evaluator)
    return json.loads(text.replace(evaluator, other).replace(evaluator[:12], other[:12]))


def exchanged_samples(files: Files) -> None:
    files[SAMPLES] = files[CONFIRMATION]["evaluation"]["samples"]


def removed(*names: str) -> Forgery:
    def forge(files: Files) -> None:
        for name in names:
            del files[name]

    return forge


def added(name: str, text: str) -> Forgery:
    def forge(files: Files) -> None:
        files[name] = text

    return forge
