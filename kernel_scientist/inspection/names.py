"""Names of kernels as their authors wrote them: a C++ compiler's say the types of the arguments as well."""

import re
from collections import Counter
from collections.abc import Sequence

_OWN = re.compile(r"_Z(?:N12_GLOBAL__N_1)?(\d{1,3})(?=[A-Za-z_])")


def plain(mangled: Sequence[str]) -> dict[str, str]:
    """Return each symbol's own name (Itanium C++ ABI: `_Z4gemmPKhPf` is `gemm`), the symbol where two are alike."""
    short = {symbol: _own(symbol) for symbol in mangled}
    count = Counter(short.values())
    return {symbol: name if count[name] == 1 else symbol for symbol, name in short.items()}


def _own(symbol: str) -> str:
    found = _OWN.match(symbol)
    if found is None:
        return symbol
    name = symbol[found.end() : found.end() + int(found[1])]
    return name if len(name) == int(found[1]) else symbol
