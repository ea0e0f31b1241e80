"""C++, HIP and CUDA text, and what the tables see in it."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from kernel_scientist.evaluate.screen.finding import MEDIUM, MOST, Finding
from kernel_scientist.evaluate.screen.tables import CPP, STRINGS, matches

_LITERAL = re.compile(
    r"""//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\("""
    r"""|"(?P<text>(?:[^"\\\n]|\\.)*+)"?|(?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*+'?"""
)


class Cpp:
    """C++ text with its comments and literals blanked, lines kept; never fails, whatever the text is."""

    def __init__(self, text: str) -> None:
        self.literals: list[tuple[int, str]] = []
        self.code = _spelled_out(self._blank(_spliced(text)))
        self.words = Counter(re.findall(r"\w+", self.code))
        self._starts = [m.end() for m in re.finditer("\n", self.code)]

    def line(self, offset: int) -> int:
        """Return the 0-based line of an offset into `code`."""
        return bisect_right(self._starts, offset)

    def findings(self) -> Iterator[Finding]:
        """Yield what the tables see; lines are counted from 0."""
        for match, rule in matches(CPP, self.code):
            yield Finding(rule.label, rule.severity, self.line(match.start()), match[0])
        for line, text in self.literals:
            for match, rule in matches(STRINGS, text):
                yield Finding(rule.label, rule.severity, line, match[0])
        yield from self._pasted()
        for name, line in self.kernels():
            if self.words[name] == 1:
                yield Finding("decoy", MEDIUM, line, f"__global__ {name} is defined and never launched")

    def kernels(self) -> Iterator[tuple[str, int]]:
        """Yield the device kernels' names, with their lines."""
        for match in re.finditer(r"__global__([^{;]{0,400})", self.code):
            signature = re.sub(r"__launch_bounds__\s?\([^()]*\)", "", match[1])
            if name := re.search(r"(\w+)\s?\(", signature):
                yield name[1], self.line(match.start())

    def exports(self) -> Iterator[tuple[str, int]]:
        """Yield the names that `extern "C"` functions have, with their lines."""
        for match in re.finditer(r'extern\s+" "\s+([^(){};=]{1,200})\(', self.code):
            if words := re.findall(r"\w+", match[1]):
                yield words[-1], self.line(match.start())

    def _pasted(self) -> Iterator[Finding]:
        """Join what is handed to function-like macros, where tokens are pasted at all, and look at the result."""
        if not re.search("##|%:%:", self.code):
            return
        macros = set(re.findall(r"#\s*define\s+(\w+)\(", self.code))
        joined: dict[str, int] = {}
        for call in re.finditer(r"\b(\w+)\s?\(", self.code):
            if call[1] in macros and len(joined) < 500:
                handed = re.split(r"[;\n]", self.code[call.end() : call.end() + 200])[0]
                words = [word for word in re.findall(r"\w+", handed) if word not in macros]
                joined.setdefault("".join(words) + "(", self.line(call.start()))
        text, lines = "\n".join(joined), list(joined.values())
        for match, rule in matches(CPP, text):
            line = lines[text.count("\n", 0, match.start())]
            yield Finding(rule.label, rule.severity, line, f"{match[0]} is pasted together")

    def _blank(self, text: str) -> str:
        parts: list[str] = []
        at, line, beside = 0, 0, False
        while match := _LITERAL.search(text, at):
            start, end = match.span()
            line += text.count("\n", at, start)
            content = match["text"]
            if match["mark"] is not None:
                close = text.find(f'){match["mark"]}"', end)
                content = text[end : close if close >= 0 else len(text)]
                end = close + len(match["mark"]) + 2 if close >= 0 else len(text)
            if content is not None:
                if beside and not text[at:start].strip():
                    content = self.literals.pop()[1] + content  # neighbours are one
                self.literals.append((line, content))
            beside = content is not None or (beside and match[0].startswith("/"))
            lines = text.count("\n", start, end)
            parts += [text[at:start], " " if content is None else '" "', "\n" * lines]
            at, line = end, line + lines
        return "".join([*parts, text[at:]])


def _spelled_out(code: str) -> str:
    """Write pybind11's name out where the text gives it another, or leaves it away."""
    aliases = re.findall(r"\bnamespace\s+(\w{1,40})\s*=\s*(?:::\s*)?pybind11\s*;", code)
    for alias in sorted(set(aliases))[:MOST]:
        code = re.sub(rf"\b{alias}\s*::", "pybind11::", code)
    if re.search(r"\busing\s+namespace\s+(?:::\s*)?(?:py|pybind11)\s*;", code):
        code = re.sub(r"(?<![\w.:>])(?=(?:exec|eval\w*|globals)\s?[(<])", "pybind11::", code)
    return code


def _spliced(text: str) -> str:
    """Join lines that end in a backslash, as a compiler does first; the line breaks are kept, behind the whole line."""
    out: list[str] = []
    held = 0
    for line in text.split("\n"):
        if line.endswith("\\"):
            out.append(line[:-1])
            held += 1
        else:
            out.append(line + "\n" * (held + 1))
            held = 0
    return "".join(out)
