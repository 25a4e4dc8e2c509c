"""How text, Markdown and LaTeX write a heading, a list and a table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from automl_plugins._imports import require

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # In LaTeX's default font encoding these three print as other characters.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: rf"\{character}" for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class Format:
    """How the parts of a document are written."""

    table: str  # table format of tabulate
    heading: Callable[[str], str]  # of an escaped title
    items: Callable[[Iterable[str]], str]  # of escaped sentences
    escape: Callable[[str], str]  # makes special characters plain text

    def tabulate(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        align: Sequence[str],
        *,
        needed_by: str,
    ) -> str:
        """A table of texts, each column aligned ``"left"`` or ``"right"``; needs tabulate."""
        # tabulate escapes for LaTeX but not for Markdown.
        escape = str if self.table == "latex_booktabs" else self.escape
        text: str = require("tabulate", needed_by=needed_by, extra="evidence").tabulate(
            [[escape(one_line(cell)) for cell in row] for row in rows],
            headers=[escape(header) for header in headers],
            tablefmt=self.table,
            # tabulate 0.9.0 does not align the columns of a table without rows.
            colalign=align if rows else None,
            # Else tabulate takes texts for numbers, and writes 0.100 as 0.1.
            disable_numparse=True,
        )
        return text


def one_line(text: str) -> str:
    """The text without line breaks and double spaces, with control characters escaped."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", " ".join(text.split()))


def join_names(names: Iterable[Hashable]) -> str:
    """The names, separated by commas."""
    return ", ".join(map(str, names))


def format_count(n: int, what: str) -> str:
    """The number with its noun, such as "1 run" or "3 runs"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def format_budget(budget: float, unit: str | None) -> str:
    """The budget with its unit, which is a plural: "1 trial", "2.5 seconds"."""
    what = str(unit)
    return f"{format_number(budget)} {what.removesuffix('s') if budget == 1 else what}"


def format_number(value: float) -> str:
    """The number with up to 15 significant digits, without trailing zeros: "0.1", "2"."""
    return f"{value:.15g}"


def align_columns(
    rows: Sequence[Sequence[str]], right: Sequence[bool], *, rule: bool = False
) -> Iterator[str]:
    """Lines of a table whose columns are aligned, with a ``rule`` below the first row."""
    widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    dashes = [["-" * width for width in widths]] * rule
    for row in [rows[0], *dashes, *rows[1:]]:
        gaps = [" " * (width - text_width(cell)) for width, cell in zip(widths, row, strict=True)]
        cells = zip(row, gaps, right, strict=True)
        yield "  ".join(g + c if is_right else c + g for c, g, is_right in cells).rstrip()


def text_width(line: str) -> int:
    """Number of columns that a text takes on a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(bool(unicodedata.combining(c)) for c in line)


def _dashes(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


TEXT = Format(
    table="simple",
    heading=lambda title: f"{title}\n{'=' * len(title)}",
    items=_dashes,
    escape=str,
)
MARKDOWN = Format(
    table="pipe",
    heading=lambda title: f"### {title}",
    items=_dashes,
    escape=lambda text: re.sub(r"([\\`*|<\[\]])", r"\\\1", text),
)
LATEX = Format(
    table="latex_booktabs",
    heading=lambda title: rf"\paragraph{{{title}}}",
    items=lambda sentences: "\n".join(
        [r"\begin{itemize}", *(rf"\item {s}" for s in sentences), r"\end{itemize}"]
    ),
    escape=lambda text: "".join(_LATEX.get(character, character) for character in text),
)
