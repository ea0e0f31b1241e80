"""Rules that find tampering: code that interferes with the process that runs the kernel.

Each rule matches something that no honest kernel needs; doubtful cases are not reported. Code that is written against
the worker's internals and obfuscated on purpose is outside the threat model (docs/threat-model.md).
"""

import ast
import builtins
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kernel_scientist.evaluation.screen.source import CppText, PythonFile, RuleMatch, Severity, assigned, is_literal

PUBLIC = re.compile(r"kernel_scientist(?:\.(?:load|CompileError))?(?:\.|$)")
"""Names of this package that a kernel may import: `load` and `CompileError`."""
USE_CASES = (
    *("admit", "baseline", "check", "compare", "compile", "control", "describe_problem", "doctor", "evaluate"),
    *("export_evidence", "list_problems", "optimize", "profile_kernel", "suite", "validate", "verify"),
)
"""Functions that this package exports for others than kernels."""
INTERNALS = frozenset((*(path.stem for path in Path(__file__).parents[2].iterdir()), *USE_CASES))
"""The modules and packages within this package, and those functions."""
TIMER = (
    r"(?:clock_gettime|gettimeofday|(?:cuda|hip)(?:Event(?:Record|ElapsedTime|Synchronize|Query)"
    r"|DeviceSynchronize|StreamSynchronize))"
)
Rule = tuple[str, str, re.Pattern[str]]
"""(kind of the finding, its message, pattern)."""


def _rules(rows: str) -> list[Rule]:
    """Return the rules of a table with lines `kind / message / pattern`."""
    parts = (row.split(" / ") for row in rows.replace("<TIMER>", TIMER).strip().splitlines())
    return [(kind, text, re.compile(pattern)) for kind, text, pattern in parts]


PATHS = _rules(r"""
internals / it reaches into this package by / kernel_scientist\..*__(?:globals|code|closure|wrapped)__.*
frames / it walks the call stack by / sys\._current_frames|inspect\.(?:stack|getouterframes)|traceback\.walk_stack
heap / it searches the heap by / gc\.get_(?:objects|referrers)
hook / it hooks the interpreter by / (?:sys|threading)\.set(?:trace|profile)\w*|sys\.addaudithook
hook / it hooks the interpreter by / sys\.monitoring\.(?:use_tool_id|register_callback|set_events)
hook / it hooks the interpreter by / (?:sys\.(?:meta_path|path_hooks)|gc\.callbacks)\.(?:insert|append|extend)
memory / it writes into the interpreter by / ctypes\.py_object\.from_address
memory / it writes into the interpreter by / ctypes\.pythonapi\.(?!Py(?:Capsule|MemoryView|Buffer|Bytes)_).+
""")
"""Rules for whole dotted names. `PyCapsule`, `PyBuffer` and `PyBytes` are exempt: DLPack needs them."""
CPP = _rules(r"""
patch / it defines a timer: / (?<=\w)(?<!return)[\s*&]+<TIMER>\s*\([^(){};]{0,200}\)[^(){};=?]{0,40}\{
patch / it traps the time stamp counter by / \bPR_SET_TSC\b
memory / it accesses a process's memory by / \b(?:SYS_)?process_vm_(?:read|write)v\b|\bptrace\s*\(\s*PT\w+
hook / it hooks the interpreter by / \bPyEval_Set(?:Trace|Profile)\w*|\bPySys_AddAuditHook\b
frames / it walks the call stack by / \bPyEval_GetFrame\w*|\bPyFrame_Get(?:Back|Locals|Globals)\b
""")
"""Rules for C++ text without comments and literals."""
PATCHED = re.compile(
    r"(?:__main__|_thread|builtins|ctypes|gc|io|json|kernel_scientist|mmap|os|select|signal|socket|statistics|struct|sys|threading|time"
    r"|timeit|torch|triton\.testing|numpy\.testing)(?:\..+)?|numpy\.\w*(?:close|equal)\w*"
)
"""Modules whose functions must not be replaced: timers, comparisons and modules that the worker uses."""
SETTINGS = re.compile(
    r"torch\.(?:backends|.*\bconfig|utils\.(?:cpp_extension|hipify))\b.*|os\.environ\b.*|sys\.modules\.\?"
    r"|sys\.(?:path|argv|std\w+|dont_write_bytecode|tracebacklimit)\b.*|.*\.(?:restype|argtypes|errcheck)"
)
"""Attributes of these modules that an honest kernel may assign to."""
SETTERS = ("builtins.setattr", "unittest.mock.patch.object")
PROCESS_MEMORY = re.compile(r"/proc/(?:[^/\s]{1,60}/){1,3}mem")
FOREIGN_CODE = re.compile(r"\b(?:dlsym|dladdr|dl_iterate_phdr|link_map|_r_debug|AT_SYSINFO_EHDR)\b")
"""Ways for native code to find another library's code. (A kernel's own JIT makes only its own code writable.)"""
Reason = tuple[str, str]
"""The kind of a finding and its detail."""


def tampering(file: PythonFile) -> Iterator[RuleMatch]:
    """Yield a finding for each way in which a kernel tampers, in no particular order."""
    for node in file.nodes:
        reasons = [*_of_path(file.path(node)), *_of_import(node), *_of_node(file, node)]
        yield from (_finding(reason, getattr(node, "lineno", 1)) for reason in reasons)
    for node, path in _replaced(file):
        yield _finding(("patch", f"it replaces {path}"), node.lineno)
    for node, text in file.strings:
        yield from (_finding(reason, node.lineno) for reason in _of_string(text))
    finds_foreign_code = any(FOREIGN_CODE.search(cpp.code) for cpp in file.native)
    for cpp in file.native:
        yield from (_finding(reason, cpp.line(offset)) for reason, offset in _of_cpp(cpp, finds_foreign_code))


def is_internal(path: str) -> bool:
    """Whether a dotted name belongs to this package and is not among the names that a kernel may import."""
    public = PUBLIC.match(path)
    return public is not None and path[public.end() :].split(".")[0] in INTERNALS


def _finding(reason: Reason, line: int) -> RuleMatch:
    return RuleMatch(f"tampering:{reason[0]}", Severity.HIGH, line, reason[1], tampering=True)


def _of_path(path: str) -> Iterator[Reason]:
    if path:
        yield from ((kind, f"{text} {path}") for kind, text, pattern in PATHS if pattern.fullmatch(path))
    if is_internal(path):
        yield "internals", f"it reaches into {path}"


def _of_string(text: str) -> Iterator[Reason]:
    if PROCESS_MEMORY.fullmatch(text):
        yield "memory", f"it accesses a process's memory by {text}"
    if is_internal(text) and re.fullmatch(r"[\w.]+", text):
        yield "internals", f"it names {text}"


def _of_import(node: ast.AST) -> Iterator[Reason]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        yield from (("internals", f"it imports {start}{n.name}") for n in node.names if is_internal(start + n.name))


def _of_node(file: PythonFile, node: ast.AST) -> Iterator[Reason]:
    """Yield the reasons found in a node's form. Access to a function's own frame is allowed, to its caller's is not."""
    match node:
        case ast.Call(func=function, args=[_, *_]) if file.path(function) == "sys._getframe":
            yield "frames", "it walks the call stack by sys._getframe"
        case ast.Attribute(attr="f_back", ctx=ast.Load()):
            yield "frames", "it walks the call stack by f_back"
        case ast.Attribute(ctx=ast.Store(), attr="__code__"):
            yield "patch", "it replaces the code of a function"
        case ast.Subscript(ctx=ast.Store(), slice=ast.Constant(value="LD_PRELOAD")):
            yield "patch", "it sets LD_PRELOAD"
        case ast.Attribute(attr=name) | ast.Name(id=name) if re.fullmatch(r"(?:SYS_)?process_vm_(?:read|write)v", name):
            yield "memory", f"it accesses a process's memory by {name}"
        case ast.Call(func=ast.Attribute(attr="ptrace"), args=[_, _, _, *_]):
            yield "memory", "it accesses a process's memory by ptrace"
        case ast.Call(func=ast.Attribute(attr="mprotect"), args=[_, _, protection]) if _writable_code(protection):
            yield "memory", "it makes code writable by mprotect"
        case _:
            pass


def _writable_code(protection: ast.expr) -> bool:
    if isinstance(protection, ast.Constant):
        return isinstance(protection.value, int) and protection.value & 6 == 6
    names = {str(getattr(node, "attr", getattr(node, "id", ""))) for node in islice(ast.walk(protection), 20)}
    return names >= {"PROT_WRITE", "PROT_EXEC"}


def _replaced(file: PythonFile) -> Iterator[tuple[ast.expr, str]]:
    """Yield the foreign objects that a kernel replaces. A literal may be assigned: it replaces no function."""
    literals = {id(target) for node in file.nodes for target, value in assigned(node) if is_literal(value)}
    missing = {path for node in file.nodes if (path := _missing(file, node))}
    for node, path in _stores(file):
        new = path in missing or (path.startswith("builtins.") and not hasattr(builtins, path[9:]))
        if PATCHED.fullmatch(path) and not (new or id(node) in literals or SETTINGS.fullmatch(path)):
            yield node, path


def _stores(file: PythonFile) -> Iterator[tuple[ast.expr, str]]:
    """Yield each attribute or item that is assigned to, with its dotted name; `?` stands in for a computed part."""
    for node in file.nodes:
        match node:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                yield node, file.path(node)
            case ast.Call(func=function, args=[owner, name, _]) if file.path(owner):
                if file.path(function) in SETTERS:
                    yield node, f"{file.path(owner)}.{name.value if isinstance(name, ast.Constant) else '?'}"
            case _:
                pass


def _missing(file: PythonFile, node: ast.AST) -> str:
    """Return the name that `not hasattr(...)` tests. It may be assigned, because it does not exist yet."""
    match node:
        case ast.UnaryOp(
            op=ast.Not(), operand=ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=name)])
        ):
            return f"{file.path(owner)}.{name}"
        case _:
            return ""


def _of_cpp(cpp: CppText, finds_foreign_code: bool) -> Iterator[tuple[Reason, int]]:
    for kind, text, pattern in CPP:
        yield from (((kind, f"{text} {match[0].strip(' *&{')}"), match.start()) for match in pattern.finditer(cpp.code))
    for match in re.finditer(r"\bmprotect\s*\(([^;]{0,300})", cpp.code):
        if finds_foreign_code and re.search(r"WRITE\b[^;]*_EXEC\b|EXEC\b[^;]*_WRITE\b|,\s*7\s*\)", match[1]):
            yield ("memory", "it makes the code of another library writable by mprotect"), match.start()
    for offset, text in cpp.literals:
        yield from ((reason, offset) for reason in _of_string(text))
        if text.startswith("LD_PRELOAD"):
            yield ("patch", "it sets LD_PRELOAD"), offset
