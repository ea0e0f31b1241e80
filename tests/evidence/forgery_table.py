"""Every forgery, and the beginning of a difference that its verification must find."""

from kernel_scientist.evidence.archive import MANIFEST
from tests.evidence.forgeries import (
    BASE,
    CONFIRMATION,
    ENVIRONMENT,
    EVALUATION,
    LINEAGE,
    PROBLEM,
    SAMPLES,
    VALIDATION,
    Forgery,
    added,
    all_of,
    another_kernel_s_figures,
    changed,
    clocks_halved,
    confirmed_twice_as_fast,
    dropped_block,
    dropped_case,
    edited_base,
    edited_source,
    exchanged_samples,
    flipped,
    half,
    hidden_base,
    invented_held_out,
    less_work,
    one_more,
    other_digest,
    other_seed,
    reference_twice_as_slow,
    removed,
    swapped_kernel,
    twice_as_fast,
    unnamed_source,
    without_held_out,
    without_last,
)

FORGERIES: dict[str, tuple[str, Forgery]] = {
    # times
    "a time": ("evaluation.json: timings[size131072]: time_us", changed(EVALUATION, "timings", 0, "time_us", by=half)),
    "all times and ratios": (
        "evaluation.json: timings[size131072]: time_us",
        lambda files: twice_as_fast(files[EVALUATION]),
    ),
    "an interval of a time": (
        "evaluation.json: timings[size131072]: interval_us[1]",
        changed(EVALUATION, "timings", 0, "interval_us", 1, by=half),
    ),
    "a row's time": (
        "evaluation.json: timings[size131072]: samples_us[0]",
        changed(EVALUATION, "timings", 0, "samples_us", 0, by=half),
    ),
    "a floor": (
        "evaluation.json: timings[size524288]: floor_us",
        changed(EVALUATION, "timings", 1, "floor_us", by=half),
    ),
    "a diagnostic of the clocks": (
        "evaluation.json: clocks[size131072]: cpu_us",
        changed(EVALUATION, "clocks", 0, "cpu_us", by=half),
    ),
    "a clock reading": (
        "samples.json: digest",
        changed(SAMPLES, "readings", 0, "rows", 0, 0, 0, 1, by=lambda ns: ns // 2),
    ),
    "a clock reading of the kernel, with their digest": (
        "evaluation.json: timings[",  # of the case that came first, which is drawn
        lambda files: clocks_halved(files[SAMPLES], "k00002", 1),
    ),
    "all clock readings of the kernel": (
        "evaluation.json: timings[size131072]: time_us",
        lambda files: clocks_halved(files[SAMPLES], "k00002"),
    ),
    "all clock readings of the reference": (
        "evaluation.json: speedups[reference]: cases: size131072: against_us",
        lambda files: clocks_halved(files[SAMPLES], "reference"),
    ),
    "a block left out": ("evaluation.json: timings[size131072]: time_us", dropped_block),
    "a reading that no clock gives": (
        "evaluation.json: samples",
        changed(SAMPLES, "readings", 0, "rows", 0, 0, 0, 0, to=0),
    ),
    # ratios and decisions
    "a ratio": ("evaluation.json", changed(EVALUATION, "speedups", 0, "ratio", by=half)),
    "the reference's times with their ratio": ("evaluation.json: speedups[reference]: ratio", reference_twice_as_slow),
    "an interval of a ratio": (
        "evaluation.json: speedups[reference]: interval",
        changed(EVALUATION, "speedups", 0, "interval", 0, by=half),
    ),
    "an interval of a case": (
        "evaluation.json: speedups[k00001]: cases: size131072: interval[0]",
        changed(EVALUATION, "speedups", 1, "cases", "size131072", "interval", by=half),
    ),
    "a margin": (
        "evaluation.json: speedups[k00001]: margin",
        changed(EVALUATION, "speedups", 1, "margin", by=lambda margin: margin + 0.5),
    ),
    "a margin in the samples": (
        "evaluation.json: speedups[k00001]: margin",
        changed(SAMPLES, "margins", by=lambda margins: [m + 0.5 for m in margins]),
    ),
    "a confidence": ("evaluation.json: speedups[k00001]: interval", changed(SAMPLES, "ratio_confidence", to=0.5)),
    "the tested source": ("evaluation.json: baseline", changed(EVALUATION, "baseline", to="reference")),
    "a label": (
        "evaluation.json: labels",
        changed(EVALUATION, "labels", by=lambda labels: [*labels, "measured:slower-case:size131072"]),
    ),
    "the device's rates": (
        "evaluation.json: timings[size131072]: floor_us",
        changed(SAMPLES, "bound", "gbps", by=half),
    ),
    "a known GPU's rates": ("samples.json: bound: gflops", changed(SAMPLES, "bound", "name", to="MI300X")),
    "a time of 0 in a ratio": (
        "evaluation.json",
        changed(EVALUATION, "speedups", 0, "cases", "size131072", "time_us", to=0),
    ),
    "the verdict": ("lineage.json: verdict", changed(LINEAGE, "kernels", 0, "verdict", to="incorrect")),
    # sources and lineage
    "the source": ("lineage.json: k00002: digest", changed(LINEAGE, "kernels", 0, "digest", by=other_digest)),
    "the source and what is derived of it": ("samples.json: sources: k00002", edited_source),
    "the base's source and what is derived of it": ("samples.json: sources: k00001", edited_base),
    "a swapped kernel": ("samples.json: sources: k00002", swapped_kernel),
    "a swapped name": ("bundle.json: kernel", changed(MANIFEST, "kernel", to="k00001")),
    "figures of another timing": ("evaluation.json: timings[size131072]: time_us", another_kernel_s_figures),
    "samples of another timing": ("evaluation.json: timings[size131072]: time_us", exchanged_samples),
    "a hidden base": ("lineage.json: k00002[1]", hidden_base),
    "the base's name": ("lineage.json: k00002: base", changed(LINEAGE, "kernels", 0, "base", to="k00009")),
    "a generation": (
        "lineage.json: k00002: generation is not before its base's",
        changed(LINEAGE, "kernels", 1, "generation", to=7),
    ),
    "a difference": (
        "lineage.json: k00002: diff",
        changed(LINEAGE, "kernels", 0, "diff", by=lambda text: text.replace("+", "-")),
    ),
    "a language": ("lineage.json: k00002: language", changed(LINEAGE, "kernels", 0, "language", to="hip")),
    "a foreign source": ("sources/k00077.py", added("sources/k00077.py", "custom_kernel = None\n")),
    "the timed source, which is not named": ("samples.json: source of the candidate", unnamed_source),
    "the timed reference": (
        "samples.json: sources: reference",
        changed(SAMPLES, "sources", "reference", by=other_digest),
    ),
    # problem and cases
    "a seed": ("problem.json: benchmarks[0]: case: seed", changed(PROBLEM, "benchmarks", 0, "case", "seed", to=1)),
    "a seed of a checking case": (
        "problem.json: tests[0]: case: seed",
        changed(PROBLEM, "tests", 0, "case", "seed", to=1),
    ),
    "a seed, wherever it is stated": ("problem.json: benchmarks[0]: case: seed", other_seed),
    "a size": ("samples.json: cases[0]: sizes: size", changed(SAMPLES, "cases", 0, "sizes", "size", to=64)),
    "the inputs of a case": ("problem.json: inputs", changed(PROBLEM, "held_out", 0, "inputs", by=other_digest)),
    "the largest size, by 1": ("samples.json: cases[2]: sizes: size", one_more),
    "a case left out": ("problem.json: benchmarks[2]", dropped_case),
    "a checking case left out": ("problem.json: tests[3]", changed(PROBLEM, "tests", by=without_last)),
    "the work of a case": ("problem.json: benchmarks[0]: work: bytes", less_work),
    "the problem's digest": ("samples.json: problem: digest", changed(PROBLEM, "digest", by=other_digest)),
    "the profile": ("problem.json: profile", changed(PROBLEM, "profile", to="full")),
    "the compatibility": ("problem.json: compat", changed(PROBLEM, "compat", to="official")),
    "the device": ("problem.json: device", changed(PROBLEM, "device", to="cuda")),
    "the problem": ("problem.json: name", changed(MANIFEST, "problem", to="rmsnorm")),
    # confirmation
    "held-out times left out": ("confirmation_evidence.json: held_out_samples", without_held_out),
    "held-out ratios invented": ("confirmation_evidence.json: held_out_samples", invented_held_out),
    "whether it is confirmed": (
        "confirmation_evidence.json: confirmed",
        changed(CONFIRMATION, "confirmed", by=flipped),
    ),
    "why it is confirmed": (
        "confirmation_evidence.json: reason",
        changed(CONFIRMATION, "reason", to="it is much faster"),
    ),
    "confirmed times and ratios": (
        "confirmation_evidence.json: evaluation: timings[size131072]: time_us",
        confirmed_twice_as_fast,
    ),
    "a held-out time": (
        "confirmation_evidence.json: held_out[size77777]: time_us",
        changed(CONFIRMATION, "held_out", 0, "time_us", by=half),
    ),
    "held-out clock readings": (
        "confirmation_evidence.json: held_out[size77777]: time_us",
        lambda files: clocks_halved(files[CONFIRMATION]["held_out_samples"], "k00002"),
    ),
    "confirmed clock readings": (
        "confirmation_evidence.json: evaluation: timings[size131072]: time_us",
        lambda files: clocks_halved(files[CONFIRMATION]["evaluation"]["samples"], "k00002"),
    ),
    "the confidence of a confirmation": (
        "confirmation_evidence.json: ratio_confidence",
        changed(CONFIRMATION, "evaluation", "samples", "ratio_confidence", to=0.5),
    ),
    "a confirmed time of 0": (
        "confirmation_evidence.json: times",
        changed(CONFIRMATION, "evaluation", "timings", 0, "time_us", to=0),
    ),
    "told seconds": (
        "validation.json: seconds: check",
        changed(VALIDATION, "seconds", "check", by=lambda seconds: seconds + 1),
    ),
    "a told status": ("validation.json: status", changed(VALIDATION, "status", to="correct")),
    "a told time": ("validation.json: geomean_us", changed(VALIDATION, "geomean_us", by=half)),
    "a told held-out ratio": (
        "validation.json: held_out: speedups[reference]: ratio",
        changed(VALIDATION, "held_out", "speedups", 0, "ratio", by=half),
    ),
    "a told digest": ("validation.json: digest", changed(VALIDATION, "digest", by=other_digest)),
    # evaluator and environment
    "the evaluator": ("samples.json: evaluator", changed(ENVIRONMENT, "evaluator", by=other_digest)),
    "the evaluator of the samples": (
        "environment.json: environment: evaluator",
        changed(SAMPLES, "evaluator", by=other_digest),
    ),
    "the machine": (
        "environment.json: environment: machine",
        changed(ENVIRONMENT, "environment", "machine", to="another"),
    ),
    "the load": (
        "environment.json: environment: others_percent",
        changed(EVALUATION, "environment", "others_percent", to="0.0001"),
    ),
    "no stages": ("environment.json: params", changed(ENVIRONMENT, "params", "harness.stages", to="0")),
    "the confidence that was set": (
        "environment.json: params: harness.confidence",
        changed(ENVIRONMENT, "params", "harness.confidence", to="0.5"),
    ),
    # files
    "samples left out": ("samples.json", removed(SAMPLES)),
    "samples and times left out": ("samples.json", all_of(removed(SAMPLES), changed(EVALUATION, "timings", to=[]))),
    "a confirmation left out": ("confirmation_evidence.json", removed(CONFIRMATION)),
    "a source left out": ("sources/k00001.py", removed(BASE)),
}
