"""Cards of symptoms: conditions on the facts of real reports, and what is shown of them."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import cpu_examples, mi300x_examples
from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.model import advice
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import counter_figures
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Trial
from kernel_scientist.records.gpu import CodeObject, Counters
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.scientist import knowledge, symptoms
from kernel_scientist.scientist.context import gpu_facts, hot_loop, observed
from kernel_scientist.scientist.knowledge import LANGUAGES, TARGETS
from kernel_scientist.scientist.llm import background
from kernel_scientist.scientist.llm.lookup import Lookup, Searching
from kernel_scientist.scientist.report_facts import KINDS, ReportFacts
from kernel_scientist.scientist.symptoms import SymptomCard
from tests.conftest import ROOT

CARDS = symptoms.load([ROOT / "knowledge"])
DOCUMENTS = {one.name: one for one in knowledge.load([ROOT / "knowledge"])}
needs_hip = pytest.mark.skipif(isinstance(hip.find(), str), reason=str(hip.find()))
NAMES = re.compile(r"`([^`]+)`")


def applying(facts: ReportFacts, language: str, target: str) -> set[str]:
    """The names of all cards that apply, also beyond the most costly three."""
    return {name for name, card in CARDS.items() if symptoms.matching({name: card}, facts, language, target)}


# ---- GPU kernels, of the recorded evaluations on MI300X


def on_mi300x(name: str) -> tuple[ReportFacts, str]:
    language, _, number = name.partition(" ")
    kernels = mi300x_examples.hip_kernels() if language == "hip" else mi300x_examples.triton_kernels()
    trial = Trial(kernel=(one := kernels[int(number) - 1]), evaluation=mi300x_examples.evaluation(one))
    return observed.facts(mi300x_examples.assignment(one.language), trial), language


@pytest.mark.parametrize(
    ("name", "fires", "does_not"),
    [
        ("no-matrix-instructions", "hip 2", "triton 3"),
        ("narrow-loads", "hip 1", "triton 2"),
        ("idle-units", "triton 3", "hip 2"),
        ("tail-of-last-round", "triton 2", "hip 3"),
        ("one-program-waits", "triton 3", "triton 2"),
        ("l2-limits-products", "triton 2", "triton 3"),
        ("vector-work-around-products", "triton 1", "triton 2"),
        ("operands-in-small-pieces", "triton 3", "hip 2"),
        ("registers-limit-residency", "triton 3", "triton 2"),
        ("lds-limits-residency", "triton 4", "triton 3"),
        ("launches-dominate", "triton 3", "hip 2"),
    ],
)
def test_a_card_applies_to_one_recorded_kernel_and_not_to_another(name: str, fires: str, does_not: str) -> None:
    assert name in applying(*on_mi300x(fires), "rocm")
    assert name not in applying(*on_mi300x(does_not), "rocm")


SPILLING = """
#include <hip/hip_runtime.h>
__global__ __launch_bounds__(1024, 8) void many(float* x, int n) {
  float v[120];
#pragma unroll
  for (int i = 0; i < 120; ++i) v[i] = x[threadIdx.x * 120 + i];
  for (int r = 0; r < n; ++r)
#pragma unroll
    for (int i = 0; i < 120; ++i) v[i] = v[i] * v[(i + 7) % 120] + v[(i + 31) % 120];
#pragma unroll
  for (int i = 0; i < 120; ++i) x[threadIdx.x * 120 + i] = v[i];
}
"""
INDEXED = """
#include <hip/hip_runtime.h>
__global__ __launch_bounds__(256) void pick(float* x, const int* at, int n) {
  float v[64];
#pragma unroll 1
  for (int i = 0; i < n; ++i) v[at[i] & 63] = x[i * 256 + threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < n; ++i) x[i * 256 + threadIdx.x] = v[at[n + i] & 63];
}
"""


def of_objects(objects: Sequence[CodeObject]) -> ReportFacts:
    kernel = mi300x_examples.hip_kernels()[0]
    report = CompileReport(ok=True, compiler="clang", objects=tuple(objects))
    evaluation = Evaluation(verdict=Verdict.OK, compile=report)
    return observed.facts(mi300x_examples.assignment("hip"), Trial(kernel=kernel, evaluation=evaluation))


@needs_hip
@pytest.mark.parametrize(
    ("source", "name", "other"),
    [(SPILLING, "spilled-registers", "array-in-scratch"), (INDEXED, "array-in-scratch", "spilled-registers")],
)
def test_scratch_memory_is_told_from_spills_in_compiled_code(source: str, name: str, other: str) -> None:
    got = hip.compile_hip(source, "gfx942", [], 240)
    assert got.ok, got.log
    found = applying(of_objects(assembly.read(got.assembly)), "hip", "rocm")
    assert name in found and other not in found


def counted(**counts: float) -> set[str]:
    """The cards of a kernel with these counts of rocprofv3 in each case, each case's launch on its own."""
    assignment = dataclasses.replace(mi300x_examples.assignment("hip"), target="rocm")
    read = {"TCC_BUBBLE_sum": 0.0, "TCC_EA0_RDREQ_32B_sum": 0.0, "TCC_EA0_WRREQ_sum": 0.0, "TCC_EA0_WRREQ_64B_sum": 0.0}
    every = {**read, **counts}
    figures = counter_figures.derive("rocprofv3", every)
    counters = tuple(
        Counters(case=c.name, kernel="gemm", tool="rocprofv3", dispatches=1, counts=every, figures=figures)
        for c in assignment.profile.benchmarks
    )
    trial = Trial(kernel=mi300x_examples.hip_kernels()[0], evaluation=Evaluation(verdict=Verdict.OK, counters=counters))
    return applying(observed.facts(assignment, trial), "hip", "rocm")


def test_cards_read_hardware_counters() -> None:
    wasteful = counted(SQ_LDS_BANK_CONFLICT=5e5, SQ_LDS_IDX_ACTIVE=1e6, TCC_EA0_RDREQ_sum=1e7)
    assert {"lds-bank-conflicts", "more-bytes-than-needed"} <= wasteful
    good = counted(SQ_LDS_BANK_CONFLICT=1e3, SQ_LDS_IDX_ACTIVE=1e6, TCC_EA0_RDREQ_sum=1e4)
    assert not {"lds-bank-conflicts", "more-bytes-than-needed"} & good


# ---- CPU kernels, compiled here for one machine whatever this one is

SUM = """extern "C" void f(const float* x, float* out, long n) {
    float s = 0; for (long i = 0; i < n; ++i) s += x[i] * x[i]; *out = s; }"""
AXPY = """extern "C" void f(const float* __restrict__ x, float* __restrict__ out, long n) {
    for (long i = 0; i < n; ++i) out[i] += 2.5f * x[i]; }"""
GATHER = """extern "C" void f(const int* __restrict__ at, const float* table, float* __restrict__ out, long n) {
    for (long i = 0; i < n; ++i) out[i] += 1.5f * table[at[i]]; }"""
CALL = """#include <cmath>
extern "C" void f(const float* x, float* out, long n) {
    for (long i = 0; i < n; ++i) out[i] = 2.0f * std::exp(x[i]) + 1.0f; }"""
TILE = """typedef float vec __attribute__((vector_size(64)));
extern "C" void f(const vec* a, const float* b, vec* c, long n) {
    vec t[ROWS];
#pragma GCC unroll 64
    for (int i = 0; i < ROWS; ++i) t[i] = c[i];
    for (long p = 0; p < n; ++p)
#pragma GCC unroll 64
        for (int i = 0; i < ROWS; ++i) t[i] += b[p * ROWS + i] * a[p];
#pragma GCC unroll 64
    for (int i = 0; i < ROWS; ++i) c[i] = t[i];
}"""
WIDE = ["-march=sapphirerapids", "-mprefer-vector-width=512"]
HALF = ["-march=sapphirerapids", "-mprefer-vector-width=256"]
PRODUCT = """#include <immintrin.h>
extern "C" void f(const float* x, float* out, long n) { for (long i = 0; i < n; ++i) _tile_dpbf16ps(0, 1, 2); }"""


def on_cpu(source: str, *flags: str) -> set[str]:
    """The cards of a C++ text."""
    built = gxx.build(BuildRequest(source, {}, [*flags]))
    assert built.report.ok, built.report.log
    trial = Trial(
        kernel=cpu_examples.kernel("cpp", 1, source), evaluation=Evaluation(verdict=Verdict.OK, compile=built.report)
    )
    return applying(observed.facts(cpu_examples.fp8()[0], trial), "cpp", "cpu")


@pytest.mark.parametrize(
    ("name", "fires", "does_not"),
    [
        ("scalar-loop", (SUM, *WIDE), (AXPY, *WIDE)),
        ("dependent-sums", (SUM, *WIDE), (AXPY, *WIDE)),
        ("narrow-vectors", (AXPY, *HALF), (AXPY, *WIDE)),
        ("gathers-in-the-loop", (GATHER, *WIDE), (AXPY, *WIDE)),
        ("calls-in-the-loop", (CALL, *WIDE), (AXPY, *WIDE)),
        ("spills-in-the-loop", (TILE.replace("ROWS", "40"), *WIDE), (TILE.replace("ROWS", "8"), *WIDE)),
        ("no-matrix-unit", (AXPY, *WIDE), (PRODUCT, *WIDE)),
    ],
)
def test_a_card_applies_to_one_compiled_text_and_not_to_another(
    name: str, fires: tuple[str, ...], does_not: tuple[str, ...]
) -> None:
    assert name in on_cpu(*fires)
    assert name not in on_cpu(*does_not)


def test_eight_sums_are_enough() -> None:
    assert "dependent-sums" not in on_cpu(TILE.replace("ROWS", "8"), *WIDE)


LINES = st.sampled_from(["vaddps", "vfmadd231ss", "vmovups", "vgatherdps", "call", "add", "..."])
OPERANDS = st.sampled_from(["%zmm1,%zmm0,%zmm0", "(%rax,%rbx,4),%xmm1", "%ymm3,0x20(%rsp)", "%rax", "", "%zmm2{%k1}"])


@given(st.lists(st.tuples(LINES, OPERANDS)))
def test_any_loop_is_read(lines: list[tuple[str, str]]) -> None:
    found = hot_loop.read("\n".join(" ".join(line) for line in lines))
    assert found is None or (found.bytes in (4, 8, 16, 32, 64) and (found.sums is None or found.sums <= len(lines)))


# ---- any facts


def values(kind: type) -> st.SearchStrategy[object]:
    numbers = st.integers(0, 10**9) if kind is int else st.floats(0, 1e9)
    words = st.sampled_from(["latency", "l2", "vector", "registers", "lds", "fp8", "fp32", "gemm", "{x}"])
    return st.none() | (st.booleans() if kind is bool else words if kind is str else numbers)


FACTS = st.fixed_dictionaries({name: values(kind) for name, kind in KINDS.items()})


@given(FACTS, st.sampled_from(LANGUAGES), st.sampled_from(TARGETS))
def test_any_facts_give_three_cards_at_most(given_facts: dict[str, object], language: str, target: str) -> None:
    facts = ReportFacts.model_validate(given_facts)
    found = symptoms.matching(CARDS, facts, language, target)
    assert len(found) <= symptoms.MOST_SHOWN and len({one.id for one in found}) == len(found)
    known = facts.known()
    weights = [CARDS[one.id].weight(known) for one in found]
    assert weights == sorted(weights, reverse=True)
    for one in found:
        assert one.text and one.moves and CARDS[one.id].is_for(language, target)


def test_nothing_is_said_of_an_empty_report() -> None:
    for target in TARGETS:
        assert symptoms.matching(CARDS, ReportFacts(), "hip", target) == []


# ---- what the cards say


@pytest.mark.parametrize("name", CARDS)
def test_a_card_rests_on_a_section_of_a_document_for_its_targets(name: str) -> None:
    card = CARDS[name]
    document, _, section = card.source.partition(", ")
    assert document in DOCUMENTS, "the source is no document"
    assert any(line.startswith(f"## {section}") for line in DOCUMENTS[document].text.splitlines())
    assert not DOCUMENTS[document].targets or set(card.targets) & set(DOCUMENTS[document].targets)


@pytest.mark.parametrize("name", CARDS)
def test_a_card_uses_the_documents_names_and_rates(name: str) -> None:
    """What it names in backticks stands in some document, so that no card knows an option that these contradict."""
    card, texts = CARDS[name], "\n".join(one.text for one in DOCUMENTS.values())
    for language in LANGUAGES:
        for said in NAMES.findall("\n".join((card.means, *card.moves_in(language)))):
            first = re.split(r"[ (=]", said)[0]
            assert first in texts, said
    flags = re.findall(r"(?<!\S)-[fm][\w-]+(?:=\d+)?", card.means + " ".join(card.moves_in("cpp")))
    assert all(flag in texts for flag in flags)


def test_a_card_is_short_and_has_two_or_three_moves() -> None:
    for name, card in CARDS.items():
        for language in (one for one in LANGUAGES if card.moves_in(one)):
            moves = card.moves_in(language)
            assert 1 <= len(moves) <= 3, name
            assert len(card.seen) + len(card.means) + sum(map(len, moves)) < 700, name


def test_what_a_card_replaces_is_said_by_the_performance_model() -> None:
    said = Path(advice.__file__).read_text()
    for name, card in CARDS.items():
        for remedy in card.replaces:
            assert remedy in said or remedy.removeprefix(": ") in said, name


def test_a_designer_reads_a_remedy_once() -> None:
    assignment, population = mi300x_examples.triton()
    base = population.get("k00003")
    shown, left = background.cards(assignment, base, 2000)
    assert "idle-units" in {one.id for one in shown} and 0 < left < 2000
    before, after = gpu_facts.limits(base), background.without_remedies(gpu_facts.limits(base), shown)
    assert any("smaller tiles or split-K" in line for row in before for line in row.advice)
    assert not any("smaller tiles or split-K" in line for row in after for line in row.advice)
    assert [len(row.advice) for row in before] == [len(row.advice) for row in after]


def test_cards_that_do_not_fit_are_left_out() -> None:
    assignment, population = mi300x_examples.hip()
    base = population.get("k00002")
    assert background.cards(assignment, base, 0) == ([], 0)
    assert 0 < len(background.cards(assignment, base, 250)[0]) < len(background.cards(assignment, base, 2000)[0])


def test_a_search_finds_a_card_by_its_symptom() -> None:
    lookup = Lookup(*mi300x_examples.triton())
    text = next(one for one in lookup.tools() if one.name == "search").run(
        Searching(words="accumulators waves_per_eu spilled"), ""
    )
    assert "Of a report that shows" in text


# ---- files

GOOD = """
narrow:
  title: narrow loads
  when: {load_bits: "<= 16"}
  cost: 10
  seen: They load {load_bits} bits.
  means: Too little.
  moves: {all: [load more]}
  source: lds-banks, The rule
"""


def of_text(folder: Path, text: str) -> dict[str, SymptomCard]:
    (folder / symptoms.FILE).write_text(text)
    return symptoms.load([folder])


def test_a_card_is_read_and_filled(tmp_path: Path) -> None:
    cards = of_text(tmp_path, GOOD)
    (one,) = symptoms.matching(cards, ReportFacts(load_bits=8), "hip", "rocm")
    assert one.text == "- **They load 8 bits.** Too little. (lds-banks, The rule)\n  - load more"
    assert symptoms.matching(cards, ReportFacts(load_bits=32), "hip", "rocm") == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("load_bits:", "load_bytes:", "there is no fact 'load_bytes'"),
        ("{load_bits} bits", "{bits} bits", "there is no fact 'bits'"),
        ("{load_bits} bits", "{load_bits bits", "narrow"),
        ('"<= 16"', '"<= few"', "is a number"),
        ('load_bits: "<= 16"', 'limit: "> 3"', "no number"),
        ('load_bits: "<= 16"', "has_amx: 7", "true or false"),
        ("Too little.", '" "', "means"),
        ('{load_bits: "<= 16"}', "{}", "when"),
        ("cost: 10", "cost: limit", "no number"),
        ("cost: 10", "cost: much", "there is no fact 'much'"),
        ("{all:", "{python:", "'python' is none of"),
        ("  cost: 10\n", "  cost: 10\n  targets: [gpu]\n", "'gpu' is none of"),
        ("  cost: 10\n", "  cost: 10\n  colour: red\n", "colour"),
        ("source: lds-banks, The rule\n", "source: lds-banks, The rule\nnarrow: {}\n", "is there twice"),
    ],
)
def test_a_wrong_card_is_one_sentence_that_names_it(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(SetupError) as error:
        of_text(tmp_path, GOOD.replace(old, new, 1))
    assert words in str(error.value) and symptoms.FILE in str(error.value) and "\n" not in str(error.value)


def test_a_name_in_two_folders_is_refused_and_a_folder_twice_is_read_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / symptoms.FILE).write_text(GOOD)
    assert len(symptoms.load([tmp_path / "a", tmp_path / "a", tmp_path])) == 1
    with pytest.raises(SetupError, match="another card 'narrow'"):
        symptoms.load([tmp_path / "a", tmp_path / "b"])
