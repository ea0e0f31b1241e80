"""What `test_memory.py` runs in a process of its own, where Triton interprets: every kernel of `tests/memory`.

Prints, as JSON, for every one what the checker said and whether the output was right; likewise for the seeds of the
problems, and for these with something taken out.
"""

import importlib.util
import json
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path

import torch

from kernel_scientist import problems
from kernel_scientist.gpu.interpreter import checker, numerics, tiles

FOLDER = Path(__file__).resolve().parents[3] / "memory"
DAMAGE = {
    "rmsnorm": [
        ("mask=offsets < cols, other=0.0).to", "mask=offsets < cols).to"),
        ("mask=mask)", "mask=offsets <= cols)"),
    ],
    "identity": [("mask=mask), mask=mask", "mask=mask)"), ("offsets < size", "offsets < size + 1")],
    "fp8-blockwise-gemm": [("rows_k[:, None] * n +", "rows_k[:, None] * (n + 1) +"), ("BLOCK // 128", "BLOCK // 64")],
}
"""What is replaced in the naive seed of a problem, one at a time."""


def load(path: Path, change: tuple[str, str] = ("", "")) -> types.ModuleType:
    """Import a submission; Triton reads its source back through its file, so a changed one gets a file of its own."""
    if change != ("", ""):
        text = path.read_text()
        assert change[0] in text, change
        path = Path(sys.argv[1]) / f"damaged{abs(hash(change))}.py"
        path.write_text(text.replace(*change))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def examine(path: Path) -> dict:
    """Check one kernel of the corpus."""
    torch.manual_seed(0)
    module = load(path)
    data = module.data()
    expected = module.expected(*(x.clone() for x in data)) if hasattr(module, "expected") else None
    defined, writable = getattr(module, "DEFINED", []), [len(data) - 1]
    for position in set(writable) - set(defined):
        data[position].view(torch.uint8).fill_(0x7F)
    with checker.watched(data, writable, defined) as report:
        output = module.custom_kernel(data)
    right = expected is not None and torch.allclose(output.float(), expected.float(), rtol=2e-2, atol=1e-2)
    return {**report.message(output), "right": right}


def examine_seed(name: str, path: Path, change: tuple[str, str] = ("", "")) -> dict:
    """Check a problem's seed on all cases of its tests."""
    problem, module, found = problems.find(name), load(path, change), []
    for case in problem.profile("cpu").tests[:2] if change[0] else problem.profile("cpu").tests:
        data = problem.generate(case)
        with checker.watched(data, [len(data) - 1]) as report:
            output = module.custom_kernel(data)
        found.append({**report.message(output), "right": problem.check(problem.generate(case), output)[0]})
    return {"defects": [d for each in found for d in each["defects"]], "right": all(each["right"] for each in found)}


def examine_tile(path: Path) -> dict:
    """Execute only the programs of one tile of a sound kernel."""
    module = load(path)
    data = module.data()
    expected = module.expected(*(x.clone() for x in data))
    plan = tiles.choose(module.custom_kernel, [x.clone() for x in data], [0.6], 20.0)
    defined, writable = getattr(module, "DEFINED", []), [len(data) - 1]
    for position in set(writable) - set(defined):
        data[position].view(torch.uint8).fill_(0x7F)
    with checker.watched(data, writable, defined, plan) as report:
        output = module.custom_kernel(data)
    ((*runs,),) = report.known(output)
    where = torch.cat([torch.arange(first, first + count) for first, count in [(0, 0), *runs]])
    known, right = output.flatten()[where].float(), expected.flatten()[where].float()
    found = {"known": len(where), "right": torch.allclose(known, right, rtol=2e-2, atol=1e-2), "plan": plan.message()}
    return {**report.message(output), **found}


def attempt(check: Callable[..., dict], *args: object) -> dict:
    try:
        return check(*args)
    except Exception:
        return {"error": traceback.format_exc()[-3000:]}


def hooks() -> list:
    """What the checker puts its hooks into."""
    module = checker.interpreter
    places = (module.InterpreterBuilder, module.GridExecutor, module.ReduceScanOpInterface)
    return [dict(vars(place)) for place in places] + [module._implicit_cvt]


def main() -> None:
    numerics.install()
    before = hooks()
    results = {f"{p.parent.name}/{p.stem}": attempt(examine, p) for p in sorted(FOLDER.glob("*/*.py"))}
    for name in problems.names():
        for path in problems.find(name).seeds("triton"):
            results[f"seeds/{name}-{path.stem}"] = attempt(examine_seed, name, path)
        for number, change in enumerate(DAMAGE.get(name, [])):
            path = problems.find(name).seeds("triton")[0]
            results[f"damaged/{name}-{number}"] = attempt(examine_seed, name, path, change)
    for path in sorted(FOLDER.glob("sound/*.py")):
        results[f"tiles/{path.stem}"] = attempt(examine_tile, path)
    results["hooks"] = {"restored": hooks() == before}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
