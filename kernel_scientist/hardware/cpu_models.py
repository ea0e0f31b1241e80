"""Names of CPU generations by vendor, family and model, or by implementer and part on ARM.

Sources: Linux, `arch/x86/include/asm/intel-family.h`, `arch/x86/kernel/cpu/amd.c` and
`arch/arm64/include/asm/cputype.h`.
"""

from collections.abc import Mapping

INTEL = {
    60: "Haswell",
    63: "Haswell-EP",
    69: "Haswell",
    70: "Haswell",
    61: "Broadwell",
    71: "Broadwell",
    79: "Broadwell-EP",
    86: "Broadwell-DE",
    78: "Skylake client",
    94: "Skylake client",
    142: "Kaby Lake",
    158: "Kaby Lake",
    165: "Comet Lake",
    166: "Comet Lake",
    125: "Ice Lake client",
    126: "Ice Lake client",
    140: "Tiger Lake",
    141: "Tiger Lake",
    167: "Rocket Lake",
    151: "Alder Lake",
    154: "Alder Lake",
    183: "Raptor Lake",
    186: "Raptor Lake",
    191: "Raptor Lake",
    170: "Meteor Lake",
    172: "Meteor Lake",
    189: "Lunar Lake",
    197: "Arrow Lake",
    198: "Arrow Lake",
    106: "Ice Lake-SP",
    108: "Ice Lake-D",
    143: "Sapphire Rapids",
    207: "Emerald Rapids",
    173: "Granite Rapids",
    174: "Granite Rapids-D",
    175: "Sierra Forest",
    221: "Clearwater Forest",
}
"""By model; the family is 6. Model 85 has three generations, told apart by the stepping."""
AMD = {
    23: (("Zen", 0x00, 0x2F), ("Zen 2", 0x30, 0x4F), ("Zen", 0x50, 0x5F), ("Zen 2", 0x60, 0xAF)),
    25: (("Zen 3", 0x00, 0x0F), ("Zen 4", 0x10, 0x1F), ("Zen 3", 0x20, 0x5F), ("Zen 4", 0x60, 0xAF)),
    26: (("Zen 5", 0x00, 0x4F), ("Zen 6", 0x50, 0x5F), ("Zen 5", 0x60, 0x7F), ("Zen 6", 0x80, 0xCF)),
}
"""By family: generation, and the first and last model."""
ARM = {
    (0x41, 0xD08): "Cortex-A72 (Graviton 1)",
    (0x41, 0xD0C): "Neoverse N1 (Graviton 2, Altra)",
    (0x41, 0xD40): "Neoverse V1 (Graviton 3)",
    (0x41, 0xD49): "Neoverse N2 (Cobalt 100)",
    (0x41, 0xD4F): "Neoverse V2 (Graviton 4, Grace)",
    (0x41, 0xD83): "Neoverse V3AE",
    (0x41, 0xD84): "Neoverse V3",
    (0x41, 0xD8E): "Neoverse N3",
    (0x46, 0x001): "A64FX",
    (0xC0, 0xAC3): "AmpereOne",
}
"""By implementer and part."""


def generation(fields: Mapping[str, str]) -> str:
    """Return the generation's name from the fields of /proc/cpuinfo; empty if it is not in the tables."""
    try:
        if "CPU implementer" in fields:
            return ARM.get((int(fields["CPU implementer"], 0), int(fields["CPU part"], 0)), "")
        vendor, family, model = fields["vendor_id"], int(fields["cpu family"]), int(fields["model"])
        if vendor == "GenuineIntel" and family == 6:
            return _of_85(int(fields["stepping"])) if model == 85 else INTEL.get(model, "")
    except (KeyError, ValueError):
        return ""
    known = AMD.get(family, ()) if vendor == "AuthenticAMD" else ()
    return next((name for name, first, last in known if first <= model <= last), "")


def _of_85(stepping: int) -> str:
    return "Skylake-SP" if stepping <= 4 else "Cascade Lake" if stepping <= 7 else "Cooper Lake"
