"""The comments of params.yaml, which describe the parameters wherever a program shows them."""

import re
from pathlib import Path

_KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):.*?(?:\s+# (?P<comment>.*))?$")
_COMMENT = re.compile(r"\s*# ?(?P<comment>.*)$")


def read(path: Path) -> dict[str, str]:
    """Return the comment of each parameter by its key (`search.generations`); empty if the file cannot be read.

    A comment stands behind its key and goes on in the lines below it, or stands directly above its key.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found, section, key, above = dict[str, str](), "", "", list[str]()
    for line in lines:
        if match := _KEY.fullmatch(line):
            section = section if match["indent"] else match["key"]
            key = f"{section}.{match['key']}" if match["indent"] else section
            found[key] = " ".join((*above, match["comment"] or ""))
            above = []
        elif match := _COMMENT.fullmatch(line):
            if key:
                found[key] += f" {match['comment']}"
            else:
                above.append(match["comment"])
        else:
            key, above = "", []
    return {key: " ".join(text.split()) for key, text in found.items() if text.strip()}
