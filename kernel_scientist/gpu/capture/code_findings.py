"""Findings about code on its GPU, as sentences for the Designer: about the compiled code, and about the source.

Sources of what does not fit a GPU (fp8 formats, wave width, missing matrix instructions): AMD Instinct MI300 and MI350
ISA documents; LLVM's BuiltinsAMDGPU.def (which target feature each `__builtin_amdgcn_mfma_*` needs); rocm.docs.amd.com,
HIP fp8 numbers (FNUZ on gfx942, OCP on gfx950).
"""

import re
from collections.abc import Sequence, Set
from pathlib import PurePath

from kernel_scientist.gpu.isa import assembly, symbols
from kernel_scientist.gpu.machine import listing, static_checks
from kernel_scientist.gpu.machine.line_table import LineTable
from kernel_scientist.gpu.machine.listing import Listing, Statement
from kernel_scientist.hardware import occupancy
from kernel_scientist.records.evaluation import CodeObject

NARROW_BITS = 32
NARROW_COUNT = 4
"""Narrow accesses in loops from which a finding is reported; fewer may be a scale or an index."""
MOST_OMISSIONS = 5
"""Missing waits of one file that are told; one that lacks more than that lacks a plan."""
LOW = 0.25
"""Share of a SIMD's maximum waves below which occupancy is low."""
_MULTIPLIES = re.compile(r"\btl\.dot(_scaled)?\b|__builtin_amdgcn_mfma|\bv_mfma_|\bwmma::|\brocwmma::|\bwgmma\b")
_PYTHON_COMMENT = re.compile(r"#(?!\s*(?:include|define|undef|if|ifdef|ifndef|elif|else|endif|pragma|error)\b).*")
_LINE_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DOCSTRING = re.compile(r'\A\s*(?:#[^\n]*\n\s*)*[rRuU]?(?P<q>"""|\'\'\').*?(?P=q)', re.DOTALL)
_OCP = re.compile(r"\b(float8_e4m3fn|float8_e5m2|float8e4nv|fp8e4nv|float8e5|fp8e5|__hip_fp8x?[24]?_e(?:4m3|5m2))\b")
_FNUZ = re.compile(
    r"\b(float8_e(?:4m3|5m2)fnuz|float8e4b8|fp8e4b8|float8e5b16|fp8e5b16|__hip_fp8x?[24]?_e(?:4m3|5m2)_fnuz)\b"
)
_NARROW = r"(?:0x[fF]{8}(?![0-9a-fA-F])|~0u?\b)"
_MASK = re.compile(
    rf"\b(__(?:shfl|ballot|any|all|activemask|syncwarp|match|reduce)\w*)\s*\(\s*(?:{_NARROW}|(\w{{1,60}})\b)"
)
_NARROW_NAME = re.compile(rf"\bdefine[ \t]+(\w{{1,60}})[ \t]+\(?{_NARROW}|\b(\w{{1,60}})[ \t]*=[ \t]*{_NARROW}")
_WAVE = re.compile(
    r"\b((?:WARP|WAVE|warp|wave)_?(?:SIZE|size|Size)\s*=?\s*32|(?:kWarpSize|kWaveSize|warpSize)\s*=\s*32)\b"
)
_LANE = re.compile(r"threadIdx\.x\s*(?:&\s*(?:31|0x1[fF])\b|[%/]\s*32\b|>>\s*5\b)")
_MATRIX = re.compile(r"\b(?:__builtin_amdgcn_|v_)(s?mfmac?_\w+)")
_ONLY_950 = re.compile(
    r"mfma_(scale_)?f32_(16x16x128|32x32x64)_f8f6f4|mfma_f32_(16x16x32|32x32x16)_b?f16|"
    r"mfma_i32_(16x16x64|32x32x32)_i8|smfmac_f32_(16x16x64|32x32x32)_b?f16|"
    r"smfmac_i32_(16x16x128|32x32x64)_i8|smfmac_f32_(16x16x128|32x32x64)_[bf]"
)
_ONLY_942 = re.compile(r"mfma_f32_(16x16x8|32x32x4)_?xf32")
_BEFORE = re.compile(r"mfma_(f32_(32x32x2|16x16x2|4x4x2|32x32x4|16x16x8)_?bf16|i32_(32x32x8|16x16x16)_?i8)$")
"""Matrix instructions of gfx908 and gfx90a that gfx940 and later lack."""


_FP8 = r"(?i:fp8|bf8|f8f6f4|e4m3|e5m2|qgmma)"
TYPES = {
    "fp8e4nv": ("float8_e4m3fn", _FP8),
    "fp8e5": ("float8_e5m2", _FP8),
    "fp8e4b8": ("float8_e4m3fnuz", _FP8),
    "fp8e5b16": ("float8_e5m2fnuz", _FP8),
    "mx e4m3": ("mxfp8 e4m3", r"f8f6f4"),
    "mx e5m2": ("mxfp8 e5m2", r"f8f6f4"),
    "mx e2m1": ("mxfp4 e2m1", r"f8f6f4"),
    "bf16": ("bfloat16", r"bf16"),
    "fp16": ("float16", r"(?<!b)f16"),
    "int8": ("int8", r"i8"),
}
"""Types of operands in Triton's names: their usual names, and what the names of their matrix instructions contain."""
NATIVE = {"gfx942": "FNUZ (float8_e4m3fnuz)", "gfx950": "OCP (float8_e4m3fn)"}
"""The fp8 formats that an architecture's matrix instructions take."""


def findings(objects: Sequence[CodeObject], arch: str, source_text: str) -> tuple[str, ...]:
    """Return findings about the code objects and the source, each sentence once, the most important first."""
    named = [code.model_copy(update={"kernel": _name(code, objects)}) for code in objects]
    said = [
        line
        for check in (refused_launch, _lds, _products, _spills, _scratch, _occupancy, _narrow)
        for code in named
        for line in check(code)
    ]
    lacking = omissions(objects)
    return tuple(dict.fromkeys([*lacking, *suspicions(source_text, arch), *said, *_matrix(objects, source_text)]))


def _name(code: CodeObject, objects: Sequence[CodeObject]) -> str:
    """Return a kernel's name with its configuration: what an autotuner chose, or what tells its code from other's."""
    others = [other.constants for other in objects if other.kernel == code.kernel]
    differing = {key for other in others for key in other if other[key] != code.constants.get(key)}
    given = [f"{key} {value}" for key, value in code.constants.items() if key in code.tuned or key in differing]
    return f"{code.kernel} ({', '.join(given)})" if given else code.kernel


def omissions(objects: Sequence[CodeObject], launched: Set[str] | None = None) -> tuple[str, ...]:
    """Return a sentence for each wait that AMD assembly lacks, if that assembly is stored.

    Only hand-written instructions can lack one: compilers schedule all others. launched: leave out kernels of other
    names (symbols, or as the source has them); what is in no kernel is a function that any of them may call.
    """
    said: list[str] = []
    for name in dict.fromkeys(code.digest for code in objects if code.arch in static_checks.ARCHITECTURES):
        text = assembly.get(name) or ""
        try:
            listed = listing.read(text)
            found, lines = static_checks.omissions(listed), LineTable(text, listed)
        except ValueError:  # it is not stored, or not a whole file that can be read
            continue
        if launched is not None:
            plain = symbols.plain([*listed.kernels])
            others = {symbol for symbol, name in plain.items() if launched.isdisjoint((symbol, name))}
            found = tuple(one for one in found if _owner(one.statement, listed) not in others)
        said += [one.sentence + _called(one.statement, listed, lines) for one in found[:MOST_OMISSIONS]]
        if (more := len(found) - MOST_OMISSIONS) > 0:
            said.append(f"{more} more {'wait is' if more == 1 else 'waits are'} missing in the same file")
    return tuple(said)


def _owner(statement: Statement, listed: Listing) -> str:
    """Return the kernel or function that a statement is in."""
    index = listed.statements.index(statement)
    places = {place: name for name, place in listed.labels.items() if not name.startswith(".L") and place <= index}
    return places[max(places)] if places else ""


def _called(statement: Statement, listed: Listing, lines: LineTable) -> str:
    """Return which lines call the function that a statement was inlined from; empty without any."""
    chain = [(PurePath(file).name, line) for file, line in lines.chain(listed.statements.index(statement))]
    outer = [place for place in chain if place != (PurePath(statement.file).name, statement.source_line)]
    return "".join(f", called in {file}:{line}" for file, line in outer)


def refused_launch(code: CodeObject) -> list[str]:
    """Return a sentence about a workgroup of more threads than the GPU starts."""
    threads = code.num_warps * (32 if code.arch.startswith("sm_") else 64)
    if threads <= occupancy.MOST_THREADS:
        return []
    return [
        f"{code.kernel}: a workgroup has {code.num_warps} x {threads // code.num_warps} = {threads} threads, "
        f"{code.arch} allows {occupancy.MOST_THREADS}: the launch is refused"
    ]


def _lds(code: CodeObject) -> list[str]:
    limit = occupancy.LIMITS.get(code.arch)
    if limit is None or code.lds_bytes <= limit.lds_workgroup:
        return []
    return [
        f"{code.kernel}: a workgroup takes {code.lds_bytes} bytes of LDS, {code.arch} has {limit.lds_workgroup}: "
        "it does not start"
    ]


def _products(code: CodeObject) -> list[str]:
    """Return a sentence about matrix products that are done in another type than that of their operands."""
    names, amd = " ".join(code.mfma), code.arch.startswith("gfx")
    others = [kind for kind in code.operands if kind in TYPES and not re.search(TYPES[kind][1], names)]
    others = [kind for kind in others if amd or kind.startswith("fp8")]
    if not code.mfma or not others:
        return []
    done = f"done with {' and '.join(code.mfma)}"
    native = NATIVE.get(code.arch) if any(kind.startswith("fp8") for kind in others) else None
    why = f": {code.arch} has matrix instructions for fp8 of the format {native} only" if native else ""
    types = ", ".join(TYPES[kind][0] for kind in others)
    return [f"{code.kernel}: a matrix product of {types} is {done}, in another type{why}"]


def _spills(code: CodeObject) -> list[str]:
    if not code.spills:
        return []
    what = "bytes stored to local memory" if code.arch.startswith("sm_") else "registers spilled to scratch memory"
    return [f"{code.kernel}: {code.spills} {what} ({code.scratch_bytes} bytes per lane)"]


def _scratch(code: CodeObject) -> list[str]:
    if code.spills or not code.scratch_bytes:
        return []
    return [
        f"{code.kernel}: {code.scratch_bytes} bytes of scratch memory per lane: an array of a lane's own that is not "
        "kept in registers, or a call that is not inlined"
    ]


def _occupancy(code: CodeObject) -> list[str]:
    limit = occupancy.LIMITS.get(code.arch)
    if limit is None or code.occupancy > LOW * limit.waves or not code.limited_by:
        return []
    reserved = f" of {code.registers} reserved" if code.registers > code.used else ""
    registers = f"{code.vgpr} + {code.agpr} registers{reserved}"
    uses = f"{registers}, {code.lds_bytes} bytes of LDS, {code.num_warps} waves per workgroup"
    limited_by = occupancy.limit_words(code.arch, *code.needs)
    what = f"{code.occupancy} of {limit.waves} waves per SIMD fit, limited by {limited_by}"
    return [f"{code.kernel}: {what} ({uses})"]


def _narrow(code: CodeObject) -> list[str]:
    """Return sentences about memory instructions in loops that move less than a register's width."""
    said: list[str] = []
    for way in ("lds_read", "lds_write", "vmem_load", "vmem_store"):
        found: dict[int, int] = {}
        for level in code.mix[1:]:
            for kind, count in level.items():
                name, _, bits = kind.partition(" ")
                if name == way and 0 < int(bits) < NARROW_BITS:
                    found[int(bits)] = found.get(int(bits), 0) + count
        said += [
            f"{code.kernel}: {count} {way} instructions of {bits} bits per lane in its loops; "
            "128 bits per lane are possible"
            for bits, count in found.items()
            if count >= NARROW_COUNT
        ]
    return said


def _matrix(objects: Sequence[CodeObject], source: str) -> list[str]:
    if not objects or any(code.mfma for code in objects) or not _MULTIPLIES.search(source):
        return []
    names = ", ".join(dict.fromkeys(code.kernel for code in objects))
    return [f"{names}: the source multiplies matrices, but there is no matrix instruction in the code"]


def suspicions(source: str, arch: str) -> tuple[str, ...]:
    """Return what does not fit an AMD GPU in a source (Python, HIP, or HIP inside Python); empty for other GPUs."""
    if not arch.startswith("gfx"):
        return ()
    text = _LINE_COMMENT.sub("", _PYTHON_COMMENT.sub("", _DOCSTRING.sub("", source)))
    return (*_formats(text, arch), *_wave(text), *_shapes(text, arch), *_bounds(text))


def _formats(text: str, arch: str) -> list[str]:
    foreign, native = (_OCP, "FNUZ") if arch == "gfx942" else (_FNUZ, "OCP")
    other = {"FNUZ": "OCP", "OCP": "FNUZ"}[native]
    names = sorted({found[1] for found in foreign.finditer(text)})
    if not names or arch not in ("gfx942", "gfx950"):
        return []
    advice = "the same bits mean another value there (FNUZ halves what OCP says, 0x80 is NaN)"
    return [f"{', '.join(names)}: {other} fp8, but {arch} converts and multiplies {native} fp8: {advice}"]


def _wave(text: str) -> list[str]:
    """Return the places that assume a wave of 32 lanes."""
    said: list[str] = []
    narrow = {None, *(name for names in _NARROW_NAME.findall(text) for name in names if name)}
    if (found := next((one for one in _MASK.finditer(text) if one[2] in narrow), None)) is not None:
        said.append(f"{found[1]} with a mask of 32 lanes: a wave has 64; take 64-bit masks, or none")
    for pattern in (_WAVE, _LANE) if "__global__" in text else ():
        if (found := pattern.search(text)) is not None:
            said.append(f"'{found[0]}': a wave has 64 lanes here, not 32")
    return said


def _shapes(text: str, arch: str) -> list[str]:
    missing = {"gfx942": _ONLY_950, "gfx950": _ONLY_942}.get(arch)
    names = sorted({found[1].removesuffix("_e64") for found in _MATRIX.finditer(text)})
    lacking = [n for n in names if (missing and missing.match(n)) or _BEFORE.match(n)]
    return [f"{name}: {arch} has no such matrix instruction" for name in lacking]


def _bounds(text: str) -> list[str]:
    said: list[str] = []
    if "__global__" in text and "__launch_bounds__" not in text:
        said.append(
            "no __launch_bounds__: the compiler allows for workgroups of 1024, so a lane gets 128 registers at the most"
        )
    if re.search(r"\bextern\s+__shared__|\bHIP_DYNAMIC_SHARED\b", text):
        said.append("LDS that is allocated at the launch (extern __shared__) is not in the figures")
    return said
