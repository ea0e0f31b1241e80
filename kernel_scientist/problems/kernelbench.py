"""KernelBench files as problems: `Model`, `get_inputs()`, `get_init_inputs()` in one Python file.

Inputs of a kernel: those of `get_inputs()`, then the parameters and buffers of `Model` by name, then the constructor's
arguments. A kernel is `custom_kernel(data)`, or a class `ModelNew` whose parameters have the names of Model's.
Sizes are the file's whole numbers at module level. Format: github.com/ScalingIntelligence/KernelBench.
"""

import ast
import functools
import re
import symtable
from pathlib import Path

from kernel_scientist.problems import assumptions, counted, requirements
from kernel_scientist.problems.device_names import on_device
from kernel_scientist.problems.expression import evaluate
from kernel_scientist.problems.problem import Controls, Leaderboard, Policy, Problem, Profile
from kernel_scientist.records.base import read_text
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Case, Size
from kernel_scientist.records.syntax import parsed

SHIM = Path(__file__).with_name("kernelbench_reference.py")
ADAPTER = "\n\nfrom reference import adapted as _adapted\n\ncustom_kernel = _adapted(ModelNew)\n"
COMPILING = "_forward = torch.compile(_forward, dynamic=False)\ncustom_kernel = ref_kernel\n"
CONTRACT = (
    "The reference is the file's class Model. A kernel gets data = (*inputs, parameters, init_inputs): the tensors of "
    "get_inputs(), a dict of Model's parameters and buffers by name (other values in each call: the constructor's, "
    "each times 0.75 to 1.25), and the list of get_init_inputs(); it returns what Model.forward returns. Instead of "
    "custom_kernel(data) the file may define a class ModelNew with Model's constructor, forward and parameter names: "
    "one object is constructed for each distinct init_inputs, at the first call with them; only forward is timed, "
    "without gradients. The parameters change before each call, so nothing that is made of them in the constructor "
    "(packed, converted) holds. Tolerance, by the type of the reference's output: |output - reference| <= t + t * "
    "|reference| for every element, with t = 1e-4 for float32 and 1e-2 for float16 and bfloat16."
)
NAMED = re.compile(r"^\d+_[\w .+-]+\.py$")
PRECISIONS = {"fp32": "torch.float32", "fp16": "torch.float16", "bf16": "torch.bfloat16"}
PARTS = {"Model": ast.ClassDef, "get_inputs": ast.FunctionDef, "get_init_inputs": ast.FunctionDef}
SEED = 42


def is_named_so(file: Path) -> bool:
    """Whether a file is named like one of KernelBench, such as `19_ReLU.py`."""
    return bool(NAMED.match(file.name))


def load(file: Path, device: str = "cpu", compat: str = "intended", name: str = "", precision: str = "fp32") -> Problem:
    """Return the problem of a KernelBench file. Raises SetupError that names what is wrong in it.

    precision: that of floating-point inputs and parameters; integers keep their type.

    compat: `official` constructs Model and ModelNew with the same seed and keeps the parameters' initial values;
    `intended` passes parameters with other values, so that a bias that is ignored is found.
    """
    tree = _parsed(file)
    found = {n.name: type(n) for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    if missing := [part for part, kind in PARTS.items() if found.get(part) is not kind]:
        raise SetupError(
            f"{file} defines no {', no '.join(missing)}: it is neither a task folder nor a KernelBench file"
        )
    if precision not in PRECISIONS:
        raise SetupError(f"{file}@{precision}: the precision is one of {', '.join(PRECISIONS)}")
    own = (name or file.stem) + (f"@{precision}" if precision != "fp32" else "")
    requirements.require(own, requirements.missing_packages({"kernelbench_model": file}))
    fixed = _read_by_model(file, tree)
    case = Case(sizes={name: size for name, size in _sizes(tree).items() if name not in fixed}, seed=SEED)
    whole = Profile(tests=(case,), benchmarks=(case,), held_out=())
    problem = Problem(
        name=own,
        folder=file.parent,
        description=_described(file, tree),
        profiles={"full": whole},
        dtype="fp32",
        work_expressions={},
        writes=(),
        policy=Policy(),
        controls=Controls(),
        leaderboard=Leaderboard(),
        reference_file=file,
        files=(file, SHIM),
        read_sources=functools.partial(_sources, file, compat, precision),
        count_work=counted.work,
        device=device,
        compat=compat,
        adapter=ADAPTER,
        compiling=COMPILING,
    )
    return assumptions.completed(problem)


def _parsed(file: Path) -> ast.Module:
    text = read_text(file)
    try:
        compile(text, str(file), "exec")  # it finds more than the parser, such as `def f(a, a)`
        return parsed(text, str(file))
    except SyntaxError as error:
        raise SetupError(f"{file}:{error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise SetupError(f"cannot read {file}: {error}") from error


def _sizes(tree: ast.Module) -> dict[str, Size]:
    """Return the whole numbers, and tuples and lists of them, that the file assigns at module level.

    Names that are assigned together (`height = width = 128`) are one size, that of the first. A name that is assigned
    twice is none, nor is `seed`, which has a meaning of its own for a case.
    """
    pairs = _assigned(tree)
    names = [name for name, _ in pairs]
    sizes = {name: size for name, value in pairs if (size := _size(value)) is not None}
    return {name: size for name, size in sizes.items() if name != "seed" and names.count(name) == 1}


def _assigned(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    """Return names and values of the assignments at module level."""
    found = list[tuple[str, ast.expr]]()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
                found.append((name, value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.append((name, value))
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                found.append((name, value))
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                found += [(n.id, value) for n, value in zip(names, values, strict=True) if isinstance(n, ast.Name)]
            case _:
                pass
    return found


def _read_by_model(file: Path, tree: ast.Module) -> set[str]:
    """Return the names at module level that classes and functions read, other than those that make the inputs.

    Such a size keeps its value: a kernel's file has a copy of it. So do those from which it is computed.
    """
    outermost = symtable.symtable(read_text(file), str(file), "exec").get_children()
    scopes = [scope for scope in outermost if scope.get_name() not in ("get_inputs", "get_init_inputs")]
    for scope in scopes:
        scopes.extend(scope.get_children())
    found = {name.get_name() for scope in scopes for name in scope.get_symbols() if name.is_global()}
    for node in reversed(tree.body):
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                parts = list[list[ast.expr]]()
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                parts = [list(pair) for pair in zip(names, values, strict=True)]
            case _:
                parts = [[name for name in ast.walk(node) if isinstance(name, ast.Name)]]
        for part in parts:
            names = [name for item in part for name in ast.walk(item) if isinstance(name, ast.Name)]
            if any(name.id in found for name in names if isinstance(name.ctx, ast.Store)):
                found |= {name.id for name in names}
    return found


def _size(node: ast.expr) -> int | list[int] | None:
    """Return a whole number, or a tuple or list of some as a list; None for other expressions, such as 1.0."""
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [_size(item) for item in node.elts]
        return [item for item in items if isinstance(item, int)] if all(isinstance(i, int) for i in items) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return None
    try:
        value = evaluate(ast.unparse(node), {})
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int) and value > 0 else None


def _described(file: Path, tree: ast.Module) -> str:
    model = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model")
    title = file.stem.partition("_")[2].replace("_", " ") or file.stem
    return f"{title}\n\n{ast.get_docstring(model) or ''}\n\n{CONTRACT}".strip()


def _sources(file: Path, compat: str, precision: str, device: str) -> dict[str, str]:
    shim = SHIM.read_text().replace("OFFICIAL = False", f"OFFICIAL = {compat == 'official'}")
    shim = shim.replace("PRECISION = torch.float32", f"PRECISION = {PRECISIONS[precision]}")
    model = on_device(file.read_text(), device)
    shim = shim.replace('DEVICE = "cpu"', f'DEVICE = "{device}"').replace('TEXT = ""', f"TEXT = {model!r}")
    return {"reference": shim, "kernelbench_model": model}
