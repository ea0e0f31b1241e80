"""Finds out how a Triton kernel uses each of its parameters: as a pointer, a size, a flag, a type, ...

Reads the kernel's syntax tree and those of the functions that it calls. Every variable is followed to the parameters
that it comes from. Runs in untrusted processes: imports the standard library and triton only.
"""

import ast
import itertools
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from triton.runtime.jit import JITFunction

DEPTH = 6
"""Calls of functions within functions that are followed."""
ATOMICS = tuple(f"atomic_{name}" for name in ("add", "max", "min", "cas", "xchg", "or", "and", "xor"))
DESCRIBING = ("make_block_ptr", "make_tensor_descriptor", "_experimental_make_tensor_descriptor")
ACCESSES = frozenset(("load", "store", *ATOMICS, *DESCRIBING))
OF_DESCRIPTORS = frozenset(("load", "store", "gather", "scatter", "atomic_add", "atomic_max", "atomic_min"))
SAME = frozenset(("multiple_of", "max_contiguous", "max_constancy", "to", "advance", "cast", "broadcast_to", "reshape"))
"""Operations whose result is an address if their argument is one."""
BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.FloorDiv, ast.Mod)
Source = tuple[str, str]
"""What a value comes from: a parameter itself (`p`), a number computed from it (`s`), or what it points to (`v`)."""
Sources = dict[Source, None]
"""Sources in the order of the expression."""


@dataclass
class Use:
    """How a parameter is used."""

    pointer: bool = False
    integers: bool = False
    """Whether what it points to is used as an index, a bound or bits."""
    addresses: bool = False
    """Whether what it points to are addresses."""
    rank: int = 0
    """Number of coordinates, if it is a tensor descriptor."""
    flag: bool = False
    optional: bool = False
    """Whether the kernel compares it with None."""
    block: bool = False
    """Whether it is the size of a tile, which must be a power of 2."""
    bound: bool = False
    """Whether it bounds a loop."""
    kind: bool = False
    """Whether it is a type."""
    arguments: int = -1
    """Number of arguments, if it is a function that the kernel calls; else -1."""
    compared: list[Any] = field(default_factory=list[Any])
    """Constants that it is compared with."""


@dataclass
class Uses:
    """The uses of a kernel's parameters, and what its variables come from."""

    params: dict[str, Use]
    variables: dict[str, Sources]
    accesses: bool = False
    """Whether it accesses memory."""
    dots: bool = False
    """Whether it multiplies matrices."""

    def behind(self, node: ast.AST) -> list[str]:
        """Return the parameters that the names in an expression come from."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        found = [source[1] for name in names for source in self.variables.get(name, {})]
        return [name for name in dict.fromkeys((*names, *found)) if name in self.params]


_KNOWN: dict[int, Uses] = {}


def of(kernel: Any, depth: int = DEPTH) -> Uses:
    """Return the uses of a `JITFunction`'s parameters."""
    if id(kernel) not in _KNOWN:
        _KNOWN[id(kernel)] = Uses({p.name: Use() for p in kernel.params}, {})  # for a function that calls itself
        _KNOWN[id(kernel)] = _UseReader(kernel, depth).read()
    return _KNOWN[id(kernel)]


def tree(kernel: Any) -> ast.FunctionDef:
    """Return a kernel's syntax tree; its lines count from the function's `def`."""
    found = ast.parse(textwrap.dedent(kernel.src)).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def line(kernel: Any) -> int:
    """Return the line of a kernel's `def` in its file."""
    before = itertools.takewhile(lambda text: not text.lstrip().startswith("def "), kernel.raw_src)
    return kernel.starting_line_number + sum(1 for _ in before)


def callee(kernel: Any, node: ast.expr) -> Any:
    """Return the function that a call names, if it is written in Triton; else None."""
    space = kernel.fn.__globals__
    value: Any = None
    if isinstance(node, ast.Name):
        value = space.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(space.get(node.value.id), node.attr, None)
    return value if isinstance(value, JITFunction) and value.fn.__module__.split(".")[0] != "triton" else None


class _UseReader:
    def __init__(self, kernel: Any, depth: int) -> None:
        self.kernel, self.depth = kernel, depth
        self.uses = Uses({p.name: Use() for p in kernel.params}, {p.name: {("p", p.name): None} for p in kernel.params})

    def read(self) -> Uses:
        body = tree(self.kernel).body
        for _ in range(2):  # what a loop assigns at its end is used at its start
            self._statements(body)
        return self.uses

    def _use(self, name: str) -> Use | None:
        return self.uses.params.get(name)

    def _statements(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign(target, value)
                case ast.AugAssign(target=target, value=value):
                    both = ast.BinOp(ast.Name(ast.unparse(target), ast.Load()), node.op, value)
                    self._assign(target, both)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(target, value)
                case ast.For(target=target, iter=iterator):
                    self._assign(target, iterator)
                case ast.If(test=test) | ast.While(test=test):
                    self._condition(test)
                case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                    self._sources(value)
                case _:
                    pass
            for inner in ("body", "orelse"):
                self._statements(getattr(node, inner, ()))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                self._assign(one, part)
            return
        sources = self._sources(value)
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.uses.variables.setdefault(node.id, {}).update(sources)

    def _condition(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and (use := self._use(node.id)):
            use.flag = True
        elif isinstance(node, ast.UnaryOp):
            self._condition(node.operand)
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                self._condition(part)
        else:
            self._sources(node)

    def _sources(self, node: ast.expr) -> Sources:
        match node:
            case ast.Name(id=name):
                return dict(self.uses.variables.get(name, {}))
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(self._sources(left), op, self._sources(right))
            case ast.Compare():
                self._compare(node)
                return {}
            case ast.Call():
                return self._call(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._condition(test)
                return {**self._sources(body), **self._sources(orelse)}
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                self._condition(node)
                return {}
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="dtype"), attr="element_ty"):
                sources = self.uses.variables.get(name, {})
                self._point({source: None for source in sources if source[0] == "p"})
                return {}
            case ast.Attribute(value=ast.Name(), attr="dtype" | "type" | "shape"):
                return {}
            case ast.Subscript(value=value) | ast.Attribute(value=value):
                return self._sources(value)
            case _:
                inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
                return {source: None for child in inner for source in self._sources(child)}

    def _binary(self, left: Sources, op: ast.operator, right: Sources) -> Sources:
        if isinstance(op, BITS):
            self._integers((*left, *right))
        if isinstance(op, ast.Add | ast.Sub):
            return {**left, **right}
        return _numbers({**left, **right})

    def _compare(self, node: ast.Compare) -> None:
        for side in (node.left, *node.comparators):
            self._sources(side)
        use = self._use(node.left.id) if isinstance(node.left, ast.Name) else None
        other = node.comparators[0]
        if use is None:
            return
        if isinstance(other, ast.Constant) and other.value is None:
            use.optional = True
        elif isinstance(other, ast.Constant):
            use.compared.append(other.value)
        elif isinstance(other, ast.Attribute) and other.attr.startswith(("float", "bfloat", "int", "uint")):
            use.kind = True

    def _point(self, sources: Sources) -> None:
        """Note that an address comes from these sources: the first parameter in it is a pointer."""
        bases = [name for kind, name in sources if kind == "p"]
        known = [name for name in bases if self.uses.params[name].pointer]
        free = [name for name in bases if not self._constant(name)]
        for name in (known or free)[:1]:
            self.uses.params[name].pointer = True
        if not bases and sources:
            for name in [name for kind, name in sources if kind == "v"][:1]:
                self.uses.params[name].addresses = True
        else:
            self._integers(tuple(sources))

    def _constant(self, name: str) -> bool:
        return any(p.name == name and p.is_constexpr for p in self.kernel.params)

    def _integers(self, sources: Iterable[Source]) -> None:
        for kind, name in sources:
            if kind == "v":
                self.uses.params[name].integers = True

    def _call(self, node: ast.Call) -> Sources:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [self._sources(arg) for arg in node.args]
        named = {word.arg: self._sources(word.value) for word in node.keywords if word.arg}
        everything = {source: None for part in (*given, *named.values()) for source in part}
        function = callee(self.kernel, node.func)
        if function is not None and self.depth:
            return self._follow(function, node, given, named) | everything
        if isinstance(node.func, ast.Name) and (use := self._use(name)) and self._constant(name):
            use.arguments = len(node.args)
            return _numbers(everything)
        self._types(node, name)
        if isinstance(node.func, ast.Attribute) and self._is_variable(node.func.value):
            return self._method(node, node.func.value, name, everything)
        if name in ACCESSES:
            self.uses.accesses = True
            address = (given or [named.get("pointer") or named.get("base") or {}])[0]
            self._point(address)
            if name.startswith("make"):
                self._sizes(node)
                return address
            return {("v", base): None for kind, base in address if kind == "p"}
        return self._builtin(node, name, everything)

    def _builtin(self, node: ast.Call, name: str, everything: Sources) -> Sources:
        self.uses.dots |= name in ("dot", "dot_scaled")
        if name in ("range", "static_range", "arange", "zeros", "full", "broadcast_to", "reshape", "view"):
            self._sizes(node)
        if name in ("range", "static_range"):
            self._integers(everything)
        return everything if name in SAME else _numbers(everything)

    def _is_variable(self, node: ast.expr) -> bool:
        root = node
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name):
            return root.id in self.uses.variables or isinstance(node, ast.Call)
        return True

    def _method(self, node: ast.Call, owner: ast.expr, name: str, everything: Sources) -> Sources:
        """Follow a method of a tensor, of an address or of a descriptor."""
        sources = self._sources(owner)
        if name in OF_DESCRIPTORS:
            self.uses.accesses = True
            coordinates = node.args[0] if node.args else None
            use = self._use(owner.id) if isinstance(owner, ast.Name) else None
            if use is not None and isinstance(coordinates, ast.List | ast.Tuple):
                use.rank = len(coordinates.elts)
            return {("v", base): None for _, base in sources}
        target = ast.unparse(node.args[0]) if node.args else ""
        if name == "to" and target.endswith(("int32", "int64", "int1")):
            self._integers(tuple(source for source in sources if isinstance(owner, ast.Call)))
        if name == "to" and "pointer_type" in target:
            for kind, base in sources:
                self.uses.params[base].addresses |= kind == "v"
        return {**sources, **everything} if name in SAME else _numbers({**sources, **everything})

    def _types(self, node: ast.Call, name: str) -> None:
        """Note parameters that are passed as types."""
        places = [word.value for word in node.keywords if word.arg in ("dtype", "out_dtype")]
        places += node.args[:1] if name == "to" else []
        places += node.args[1:2] if name in ("zeros", "cast") else node.args[2:3] if name == "full" else []
        for place in places:
            if isinstance(place, ast.Name) and (use := self._use(place.id)):
                use.kind = True

    def _sizes(self, node: ast.Call) -> None:
        """Note parameters that are sizes of tiles, or bounds of loops."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        loop = name in ("range", "static_range")
        places = [*node.args, *(word.value for word in node.keywords if word.arg in ("block_shape", "shape"))]
        places = places[-3:] if name.startswith("make") else places
        for place in places:
            for inner in ast.walk(place):
                if isinstance(inner, ast.Name) and (use := self._use(inner.id)):
                    use.bound, use.block = use.bound or loop, use.block or not loop

    def _follow(self, function: Any, node: ast.Call, given: list[Sources], named: dict[str, Sources]) -> Sources:
        """Apply the uses of a called function's parameters to the arguments; return what it may have loaded."""
        uses = of(function, self.depth - 1)
        self.uses.accesses |= uses.accesses
        self.uses.dots |= uses.dots
        names = [p.name for p in function.params]
        pairs = [*zip(names, given, strict=False), *((name, part) for name, part in named.items() if name in names)]
        direct = dict(zip(names, node.args, strict=False)) | {w.arg: w.value for w in node.keywords if w.arg}
        loaded: Sources = {}
        for name, sources in pairs:
            use = uses.params[str(name)]
            if use.pointer:
                self._point(sources)
                loaded |= {("v", base): None for kind, base in sources if kind == "p"}
            if use.integers or use.bound:
                self._integers([("v", base) for _, base in sources] if use.integers else sources)
            place = direct.get(str(name))
            if isinstance(place, ast.Name) and (own := self._use(place.id)):
                _join(own, use)
        return loaded


def _join(own: Use, other: Use) -> None:
    """Add the uses of the parameter that an argument is passed to."""
    for name in ("flag", "optional", "block", "bound", "kind", "addresses"):
        setattr(own, name, getattr(own, name) or getattr(other, name))
    own.rank, own.arguments = max(own.rank, other.rank), max(own.arguments, other.arguments)
    own.compared += [value for value in other.compared if value not in own.compared]


def _numbers(sources: Sources) -> Sources:
    """Return the sources of a number that is computed from others: it is no address."""
    return {("s" if kind == "p" else kind, name): None for kind, name in sources}
