"""Background documents: loading, filtering, ranking by relevance, token budget."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.compilers.source import read_kernel
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Knowledge
from kernel_scientist.scientist import knowledge
from kernel_scientist.scientist.knowledge import Document, estimated_tokens, load
from tests.conftest import ROOT

FOLDER = ROOT / "knowledge"
PLENTY = 1_000_000
OURS = {
    "attention",
    "bf16-gemm",
    "cdna3-isa-and-memory",
    "cpu-amx",
    "cpu-vectorisation-and-caches",
    "cuda-hopper",
    "fp8-formats",
    "hip-and-rocwmma",
    "lds-banks",
    "memory-bound-kernels",
    "mfma-layouts",
    "mi300-gemm-practice",
    "mixture-of-experts",
    "mla-decode",
    "softmax-and-layernorm",
    "triton-on-amd",
    "xcd-swizzling",
}


def choose(*arguments: Any, **more: Any) -> tuple[Document, ...]:
    """The documents that are chosen."""
    return knowledge.choose(*arguments, **more).documents


def document(name: str, text: str = "words", title: str = "", **fields: tuple[str, ...]) -> Document:
    empty: dict[str, tuple[str, ...]] = {"topics": (), "languages": (), "targets": (), "sources": ()}
    return Document(name=name, title=title or name, text=text, **{**empty, **fields})


def names(documents: tuple[Document, ...]) -> list[str]:
    return [d.name for d in documents]


# ---- this repository's documents


@pytest.mark.parametrize("target", ["cpu", "rocm"])
def test_sections_for_other_targets_are_left_out(target: str, tmp_path: Path) -> None:
    front = "---\ntitle: T\nsections: {Waves: rocm, Caches: [cpu]}\n---\n"
    (tmp_path / "a.md").write_text(f"{front}Start.\n\n## Waves\n\nw\n\n## Caches\n\nc\n\n## Both\n\nb\n")
    text = load([tmp_path])[0].on(target).text
    assert ("## Waves" in text, "## Caches" in text) == (target == "rocm", target == "cpu")
    assert text.startswith("Start.") and text.endswith("b")


@pytest.mark.parametrize("sections", ["{Nowhere: cpu}", "{Here: gpu}", "[Here]"])
def test_a_section_that_is_not_there_is_an_error(sections: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"---\nsections: {sections}\n---\n## Here\n\ntext\n")
    with pytest.raises(SetupError, match=r"a\.md: .*(Nowhere|gpu|sections)"):
        load([tmp_path])


def test_a_cpu_campaign_reads_nothing_about_mi300() -> None:
    """fp8's formats apart, whose table says which hardware has which."""
    for one in load([FOLDER]):
        if one.name != "fp8-formats" and "cpp" in (*one.languages, "cpp") and "cpu" in (*one.targets, "cpu"):
            text = one.on("cpu").text if not one.targets or "cpu" in one.targets else ""
            assert "MI300" not in text and "304 CUs" not in text, one.name


def test_the_repository_has_its_documents() -> None:
    assert {d.name for d in load([FOLDER])} >= OURS


@pytest.mark.parametrize("one", load([FOLDER]), ids=lambda d: d.name)
def test_each_document_names_its_sources_and_has_a_suitable_length(one: Document) -> None:
    assert one.sources and one.topics and one.title
    assert all("http" in source or "section" in source for source in one.sources)
    assert 300 <= len(one.text.split()) <= 1000


@pytest.mark.parametrize(
    ("query", "language", "target", "first"),
    [
        ("LDS bank conflicts: pad or swizzle the tile", "hip", "rocm", "lds-banks"),
        ("remap workgroups to XCDs for L2 locality", "triton", "rocm", "xcd-swizzling"),
        ("which lane holds which element of an MFMA operand", "hip", "rocm", "mfma-layouts"),
        ("num_stages and waves_per_eu of a Triton kernel", "triton", "rocm", "triton-on-amd"),
        ("launch bounds and register spills in HIP", "hip", "rocm", "hip-and-rocwmma"),
        ("e4m3fnuz bias and NaN encoding", "hip", "rocm", "fp8-formats"),
        ("AVX-512 register tile and packing", "cpp", "cpu", "cpu-vectorisation-and-caches"),
        ("GEMM with tdpbf16ps on AMX tiles, VNNI layout", "cpp", "cpu", "cpu-amx"),
        ("rmsnorm is limited by memory bandwidth", "cpp", "cpu", "memory-bound-kernels"),
        ("TMA and wgmma pipeline", "cuda", "cuda", "cuda-hopper"),
        ("softmax over the vocabulary", "triton", "rocm", "softmax-and-layernorm"),
        ("layernorm and GELU of rows", "cpp", "cpu", "softmax-and-layernorm"),
        ("bf16 GEMM of a linear layer", "triton", "rocm", "bf16-gemm"),
        ("causal attention over a prompt", "triton", "rocm", "attention"),
        ("mixture of experts with a shared expert", "cpp", "cpu", "mixture-of-experts"),
        ("latent attention, one decoding step over a cache", "hip", "rocm", "mla-decode"),
    ],
)
def test_a_query_selects_its_document(query: str, language: str, target: str, first: str) -> None:
    assert names(choose(load([FOLDER]), query, language, target, PLENTY))[0] == first


@pytest.mark.parametrize("query", ["fp8 GEMM", "LDS padding", "softmax over rows", "split-K", ""])
def test_a_triton_gemm_on_mi300_gets_its_notes_whatever_the_experiment(query: str) -> None:
    problem = "block-scaled fp8 GEMM"
    chosen = names(choose(load([FOLDER]), f"{problem} {query}", "triton", "rocm", 6000, False, problem))
    assert {"triton-on-amd", "mi300-gemm-practice", "cdna3-isa-and-memory"} <= {*chosen}


def test_notes_for_memory_bound_problems_are_only_for_these() -> None:
    documents = [document("all"), document("streaming", bound=("memory",))]
    assert names(choose(documents, "words", "cpp", "cpu", PLENTY, memory_bound=False)) == ["all"]
    assert names(choose(documents, "words", "cpp", "cpu", PLENTY, memory_bound=True)) == ["all", "streaming"]


DIGESTS = {
    "softmax": "softmax-and-layernorm",
    "layernorm-gelu": "softmax-and-layernorm",
    "bf16-gemm": "bf16-gemm",
    "attention-prefill": "attention",
    "moe": "mixture-of-experts",
    "mla-decode": "mla-decode",
}


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
@pytest.mark.parametrize(("language", "target"), [("triton", "rocm"), ("cpp", "cpu")])
def test_a_problem_gets_its_digest_within_the_usual_budget(name: str, digest: str, language: str, target: str) -> None:
    problem = problems.find(name)
    text = f"{name} {problem.description}"
    chosen = names(choose(load([FOLDER]), f"{text} larger tile", language, target, Knowledge().tokens, False, text))
    assert digest in chosen
    assert not ({"mla-decode", "mixture-of-experts"} - {digest}) & {*chosen}


def test_notes_about_a_problem_are_only_for_problems_that_name_it() -> None:
    documents = [document("all"), document("special", about=("quokka",))]
    assert names(choose(documents, "words on a quokka", "cpp", "cpu", PLENTY)) == ["all", "special"]
    assert names(choose(documents, "words on a quokka", "cpp", "cpu", PLENTY, problem="words")) == ["all"]


def test_a_document_whose_own_topic_the_plan_names_comes_first() -> None:
    documents = [document("about_rows", topics=("rows", "gemm")), document("matrix", topics=("tile unit", "gemm"))]
    assert names(choose(documents, "rows rows", "cpp", "cpu", PLENTY, plan="rows of a GEMM"))[0] == "about_rows"
    assert names(choose(documents, "rows rows", "cpp", "cpu", PLENTY, plan="use the Tile-unit"))[0] == "matrix"
    shared = names(choose(documents, "rows rows", "cpp", "cpu", PLENTY, plan="another GEMM"))
    assert shared == names(choose(documents, "rows rows", "cpp", "cpu", PLENTY))


def test_a_document_that_the_plan_names_is_cut_at_a_section_where_it_does_not_fit() -> None:
    text = "## One\n\n" + "a " * 40 + "\n\n## Two\n\n" + "b " * 40
    long = document("long", text=text, topics=("quokka",))
    for tokens, kept in ((1000, 2), (30, 1), (10, 0)):
        chosen = choose([long], "words", "cpp", "cpu", tokens, plan="the quokka way")
        assert sum(d.text.count("## ") for d in chosen) == kept
        assert sum(estimated_tokens(d.text) for d in chosen) <= tokens
    assert choose([long], "quokka", "cpp", "cpu", 30) == ()


def test_what_a_short_document_leaves_of_its_share_goes_to_a_longer_one() -> None:
    long = document("long", text="## One\n\n" + "quokka " * 40 + "\n\n## Two\n\n" + "b b" * 80, topics=("quokka",))
    short = document("short", text="numbat", topics=("numbat",))
    whole = estimated_tokens(long.text) + estimated_tokens(short.text)
    chosen = choose([long, short], "words", "cpp", "cpu", whole, plan="a quokka and a numbat")
    assert {d.name: d.text for d in chosen} == {"long": long.text, "short": short.text}


@pytest.mark.parametrize("plan", ["AMX tiles for the products", "decode to bf16, multiply by tdpbf16ps"])
def test_a_plan_for_amx_gets_its_notes_whatever_the_base_is(plan: str) -> None:
    base = read_kernel(ROOT / "problems/fp8-blockwise-gemm/seeds/cpp_blocked.py")
    problem = f"fp8-blockwise-gemm {problems.find('fp8-blockwise-gemm').description}"
    chosen = choose(
        load([FOLDER]), f"{problem} {plan} {base}", "cpp", "cpu", Knowledge().tokens, False, problem, plan=plan
    )
    assert "cpu-amx" in names(chosen)


def test_notes_for_a_gemm_in_triton_hold_no_cpp() -> None:
    for one in choose(load([FOLDER]), "GEMM", "triton", "rocm", PLENTY, memory_bound=False):
        assert "__builtin" not in one.text and "__attribute__" not in one.text, one.name


def test_a_cpu_campaign_gets_no_gpu_documents() -> None:
    chosen = names(choose(load([FOLDER]), "fp8 GEMM", "cpp", "cpu", PLENTY))
    assert "cpu-vectorisation-and-caches" in chosen
    assert not set(chosen) & {"lds-banks", "mfma-layouts", "triton-on-amd", "cuda-hopper", "xcd-swizzling"}


# ---- reading


def test_a_plain_file_is_used_and_chosen_for_a_matching_query(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Gemini of the stars\n\nOur quokka trick doubles the throughput of scans.\n")
    documents = load([FOLDER, tmp_path])
    notes = next(d for d in documents if d.name == "notes")
    assert notes.title == "Gemini of the stars" and not (notes.topics or notes.languages or notes.targets)
    for language, target in (("cpp", "cpu"), ("hip", "rocm"), ("cuda", "cuda")):
        assert names(choose(documents, "try the quokka trick", language, target, PLENTY))[0] == "notes"


def test_front_matter_is_read_and_is_not_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text(
        "---\ntitle: T\ntopics: [lds, 90]\nlanguages: hip\ntargets: []\nsources:\n  - S\nextra: 1\n---\n\nBody.\n"
    )
    (one,) = load([file])
    assert one == document("a", "Body.", "T", topics=("lds", "90"), languages=("hip",), sources=("S",))


def test_without_a_heading_the_title_is_the_file_name(tmp_path: Path) -> None:
    (tmp_path / "warp-tricks.md").write_text("Just text.")
    assert load([tmp_path])[0].title == "warp-tricks"


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("\ufeff---\r\ntitle: T\r\n---\r\nBody\r\n".encode())
    assert load([tmp_path])[0] == document("a", "Body", "T")


def test_folders_are_searched_in_order_without_readmes_blank_files_and_repeats(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    for file in ("b.md", "a.md", "README.md", "note.txt", "deep/c.md", "deep/ReadMe.md"):
        (tmp_path / file).write_text("text")
    (tmp_path / "blank.md").write_text("---\ntitle: nothing\n---\n\n")
    assert names(load([tmp_path, deep / "c.md"])) == ["a", "b", "c"]
    assert names(load([deep, tmp_path])) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("---\ntitle: [\n---\ntext", "is not YAML"),
        ("---\ntitle: T\ntext", "has no end"),
        ("---\njust words\n---\ntext", "must contain keys"),
        ("---\ntopics: {a: 1}\n---\ntext", "topics must be a list"),
        ("---\nlanguages: [fortran]\n---\ntext", "'fortran' is none of cpp, triton, hip, cuda"),
        ("---\ntargets: [gfx942]\n---\ntext", "'gfx942' is none of cpu, cuda, rocm"),
        ("---\nbound: compute\n---\ntext", "'compute' is none of memory"),
    ],
)
def test_invalid_front_matter_is_an_error_that_names_the_file(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "broken.md").write_text(content)
    with pytest.raises(SetupError) as error:
        load([tmp_path])
    assert words in str(error.value) and "broken.md" in str(error.value) and "\n" not in str(error.value)


def test_an_unreadable_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    (tmp_path / "notes.txt").write_text("text")
    for path, words in (
        (tmp_path / "absent.md", "No such file"),
        (tmp_path / "latin.md", "UTF-8"),
        (tmp_path / "notes.txt", "suffix .md"),
        (tmp_path / "no-such-folder", "neither a folder"),
    ):
        with pytest.raises(SetupError, match=words) as error:
            load([path])
        assert path.name in str(error.value)


# ---- choosing


@pytest.mark.parametrize(
    ("language", "target", "expected"),
    [
        ("hip", "rocm", ["all", "hip", "rocm"]),
        ("triton", "rocm", ["all", "rocm"]),
        ("hip", "cuda", ["all", "hip"]),
        ("cpp", "cpu", ["all"]),
    ],
)
def test_only_applicable_documents_are_chosen(language: str, target: str, expected: list[str]) -> None:
    documents = [
        document("all"),
        document("hip", languages=("hip",)),
        document("rocm", targets=("rocm",)),
        document("both", languages=("cuda",), targets=("rocm",)),
    ]
    assert names(choose(documents, "words", language, target, PLENTY)) == expected


def test_title_and_topics_have_more_weight_than_the_text() -> None:
    text = "A long text on many things: caches, registers, tiles, loops."
    documents = [
        document("text", f"{text} Also swizzling."),
        document("topic", text, topics=("swizzling",)),
        document("other", text),
    ]
    assert names(choose(documents, "swizzling", "hip", "rocm", PLENTY)) == ["topic", "text", "other"]


def test_a_document_that_exceeds_the_budget_is_skipped() -> None:
    documents = [document("large", "tile " * 100, topics=("tile",)), document("small", "tile it")]
    assert names(choose(documents, "tile", "hip", "rocm", 10)) == ["small"]
    assert names(choose(documents, "tile", "hip", "rocm", 500)) == ["large", "small"]
    assert choose(documents, "tile", "hip", "rocm", 0) == ()


def test_a_token_is_four_characters() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


TEXTS = st.text(st.sampled_from("ab fp8_lds.\n#é"), min_size=1, max_size=60)
DOCUMENTS = st.lists(st.builds(document, name=TEXTS, text=TEXTS, title=TEXTS), max_size=6)


@given(DOCUMENTS, TEXTS, st.integers(0, 60))
def test_the_budget_is_kept_and_every_document_that_fits_is_chosen(
    documents: list[Document], query: str, tokens: int
) -> None:
    chosen = choose(documents, query, "hip", "rocm", tokens)
    left = tokens - sum(estimated_tokens(d.text) for d in chosen)
    assert left >= 0
    missing = list(documents)
    for one in chosen:
        missing.remove(one)  # fails for a document that is not in the list, or chosen twice
    assert all(estimated_tokens(d.text) > left for d in missing)


@given(DOCUMENTS, TEXTS)
def test_the_order_of_the_files_does_not_matter(documents: list[Document], query: str) -> None:
    forwards = choose(documents, query, "hip", "rocm", PLENTY)
    assert forwards == choose(documents[::-1], query, "hip", "rocm", PLENTY)
    assert choose([], query, "hip", "rocm", PLENTY) == ()


def test_documents_that_a_designer_asks_for_take_the_place_of_others() -> None:
    """Background stays within its share of the prompt."""
    long = document("long", "## One\n" + "words " * 40 + "\n## Two\n" + "more " * 400, title="Long")
    background = knowledge.choose([document("near", "tile " * 40), long], "tile", "hip", "rocm", 120)
    assert names(background.documents) == ["near"] and [*background.others] == ["Long"]
    read = background.beginning_with([background.others["Long"]])
    assert names(read) == ["long", "near"] and "more" not in read[0].text
    assert sum(estimated_tokens(one.text) for one in read) <= 120
