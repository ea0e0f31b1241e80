"""The corpus: kernels that try to fool the judge (`kernels/`) and honest ones that look suspicious (`honest/`).

Those for a CPU are here, those for a GPU, of either vendor, in `gpu/`, in folders of the same names.

A file begins with comment lines `# key: value` that end at the first line of another kind:

    # cheat: B1 memo keyed by data_ptr        in honest/: `# honest: what looks suspicious`
    # problem: identity
    # expect: incorrect rejected              acceptable verdicts
    # label: decoy                            optional: what the judge must say besides
    # gains: false                            optional: where `ok`, it must not look faster than honest work
    # case: 0 2                               optional: benchmarks that it is timed on, from 0 on; else 1
    # Only its own clock says so.             optional: any further words
"""

import ast
import base64
import marshal
import random
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.records.kernel import Verdict

FOLDER = Path(__file__).resolve().parent
GPU = FOLDER / "gpu"
PROBLEMS = ("identity", "rmsnorm", "fp8-blockwise-gemm")
KEYS = ("cheat", "honest", "problem", "expect", "label", "gains", "case")
HONEST_WORK = {
    "identity": ("one_thread_copy", "returns_the_buffer_only"),
    "rmsnorm": ("one_thread_rows", "asserts_shapes"),
    "fp8-blockwise-gemm": ("gemm_panels_by_shape",),
}
GPU_HONEST_WORK = {"identity": ("triton_copy",), "rmsnorm": ("triton_rows",)}
"""What `gains: false` is measured against: the code most cheats are built on, and its like on all threads. A cheat that
is neutralised is not faster than the faster of the two, where there are two."""
VARIANTS = 5
"""How many kinds of `obfuscated` there are; the seed picks one and then its details."""


@dataclass(frozen=True)
class Fixture:
    """One kernel of the corpus and what the judge may say of it."""

    name: str
    path: Path
    problem: str
    expect: frozenset[Verdict]
    label: str | None
    gains: bool
    """False: neutralised at the least; with the verdict `ok` it must not look faster than honest work."""
    source: str
    cases: tuple[int, ...]
    """Which benchmarks it is timed on."""
    cheat: str | None
    """`B1 memo keyed by data_ptr`; None: an honest kernel."""

    @property
    def family(self) -> str | None:
        """The entry of the catalogue, such as `B1`; None: an honest kernel."""
        return self.cheat.split()[0] if self.cheat else None


class HeaderError(ValueError):
    """A file's header is not what the corpus needs; the message names file and key."""


def load(within: Path = FOLDER) -> list[Fixture]:
    """Return every kernel of both folders within one, by name. Raises HeaderError."""
    paths = [p for folder in ("kernels", "honest") for p in (within / folder).glob("*.py")]
    fixtures = [parse(p, p.read_text()) for p in sorted(paths, key=lambda p: (p.parent.name == "honest", p.name))]
    names = [f.name for f in fixtures]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise HeaderError(f"names used twice: {', '.join(twice)}")
    return fixtures


def spread(fixtures: list[Fixture]) -> list[Fixture]:
    """Return them in an order of which every beginning holds as many kinds as it can: one of each, then the next."""
    kinds: dict[str | None, list[Fixture]] = {}
    for fixture in fixtures:
        kinds.setdefault(fixture.family, []).append(fixture)
    return [kind[turn] for turn in range(len(fixtures)) for kind in kinds.values() if turn < len(kind)]


def parse(path: Path, source: str) -> Fixture:
    """Read one file's header. Raises HeaderError."""
    header = _header(path, source)
    honest = path.parent.name == "honest"
    required = ("honest" if honest else "cheat", "problem", "expect")
    if missing := [key for key in required if not header.get(key)]:
        raise HeaderError(f"{path.name}: no `# {missing[0]}: ...` in its header")
    cheat = None if honest else header["cheat"]
    if cheat is not None and not re.match(r"[A-E]\d+ \S", cheat):
        raise HeaderError(f"{path.name}: cheat {cheat!r} begins with no entry of the catalogue, such as `B1 ...`")
    if header["problem"] not in PROBLEMS:
        raise HeaderError(f"{path.name}: problem {header['problem']!r} is none of {', '.join(PROBLEMS)}")
    try:
        expect = frozenset(Verdict(word) for word in header["expect"].split())
    except ValueError as error:
        raise HeaderError(f"{path.name}: expect: {error}") from error
    gains = header.get("gains", "true")
    if gains not in ("true", "false"):
        raise HeaderError(f"{path.name}: gains {gains!r} is neither true nor false")
    if gains == "false" and Verdict.OK not in expect:
        raise HeaderError(f"{path.name}: gains: false says something only where `ok` is expected")
    cases = header.get("case", "1").split()
    if not set(cases) <= {"0", "1", "2"}:
        raise HeaderError(f"{path.name}: case {header['case']!r}: the benchmarks are 0, 1, 2")
    return Fixture(
        name=path.stem,
        path=path,
        problem=header["problem"],
        expect=expect,
        label=header.get("label"),
        gains=gains == "true",
        source=source,
        cases=tuple(map(int, cases)),
        cheat=cheat,
    )


def _header(path: Path, source: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in source.splitlines():
        if not line.startswith("# "):
            break
        match = re.match(r"# ([a-z]+): (.+)$", line)
        if match is None or (match[1] not in KEYS and header):
            continue  # further words
        key, value = match[1], match[2].strip()
        if key not in KEYS:
            raise HeaderError(f"{path.name}: unknown key {key!r} in its header; known: {', '.join(KEYS)}")
        if key in header:
            raise HeaderError(f"{path.name}: {key} twice in its header")
        header[key] = value
    return header


def obfuscated(source: str, seed: int) -> str:
    """Return a kernel that behaves like `source` and that no static screen can read; `seed` picks how."""
    variants = (_base64, _reversed, _marshalled, _getattrs, _chunks)
    return variants[seed % VARIANTS](source, random.Random(seed))


def _base64(source: str, _rng: random.Random) -> str:
    text = base64.b64encode(zlib.compress(source.encode())).decode()
    code = "__import__('zlib').decompress(__import__('base64').b64decode(TEXT)).decode()"
    return f'TEXT = """{text}"""\nexec(compile({code}, __file__, "exec"), globals())\n'


def _reversed(source: str, _rng: random.Random) -> str:
    return f'TEXT = {source[::-1]!r}\nexec(compile(TEXT[::-1], __file__, "exec"), globals())\n'


def _marshalled(source: str, _rng: random.Random) -> str:
    code = base64.b85encode(marshal.dumps(compile(source, "kernel.py", "exec"))).decode()
    return f"CODE = {code!r}\nexec(__import__('marshal').loads(__import__('base64').b85decode(CODE)), globals())\n"


def _getattrs(source: str, rng: random.Random) -> str:
    return _rewritten(source, _Getattr(rng))


def _chunks(source: str, rng: random.Random) -> str:
    return _rewritten(source, _Chunks(rng))


def _rewritten(source: str, transformer: ast.NodeTransformer) -> str:
    return ast.unparse(ast.fix_missing_locations(transformer.visit(ast.parse(source)))) + "\n"


class _Getattr(ast.NodeTransformer):
    """`a.name` becomes `getattr(a, "na" + "me")`, and `a.name = b` `setattr(a, "na" + "me", b)`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node = ast.Attribute(self.visit(node.value), node.attr, node.ctx)
        if not isinstance(node.ctx, ast.Load) or _mangled(node.attr):
            return node
        return _call("getattr", node.value, self._name(node.attr))

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Attribute) or _mangled(target.attr):
            return self._visited(node)
        return ast.Expr(
            _call("setattr", self.visit(target.value), self._name(target.attr), self.visit(node.value)),
        )

    def _visited(self, node: ast.AST) -> ast.stmt:
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.stmt)
        return visited

    def _name(self, name: str) -> ast.expr:
        cut = self.rng.randrange(len(name) + 1)
        return ast.BinOp(ast.Constant(name[:cut]), ast.Add(), ast.Constant(name[cut:]))


class _Chunks(ast.NodeTransformer):
    """A long string becomes its pieces in another order, put right when the module is imported."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, str) or len(node.value) < 8:
            return node
        cuts = sorted(self.rng.sample(range(1, len(node.value)), min(len(node.value) // 4, 40)))
        pieces = [node.value[i:j] for i, j in zip([0, *cuts], [*cuts, len(node.value)], strict=True)]
        order = self.rng.sample(range(len(pieces)), len(pieces))
        shuffled, places = [pieces[i] for i in order], [order.index(i) for i in range(len(order))]
        return ast.parse(f"''.join(map({shuffled!r}.__getitem__, {places!r}))", mode="eval").body

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node  # its parts must stay literals

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.pattern:
        return node


def _mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _call(function: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])
