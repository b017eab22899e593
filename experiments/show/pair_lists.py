"""Lists of the pairs that a method finds or misses, with the first lines of both pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from spotsigs.reports.output_files import write_csv, write_text

HEADER = (
    *("collection", "method", "list", "a", "b"),
    *("truth", "found_by_others", "others", "first_line_a", "first_line_b"),
)


@dataclass(frozen=True)
class PairList:
    """Pairs of a method on a collection."""

    # Whose pairs, and which of them
    collection: str
    method: str
    title: str
    pairs: Sequence[tuple[str, str]]  # ids of the pages
    kinds: Sequence[str]  # whether each pair is ``true``, ``false`` or ``unjudged``
    found_by: Sequence[int]  # number of the other methods that find it
    others: int  # number of the other methods
    lines: Mapping[str, str] = field(default_factory=dict)  # first line of the pages that are shown, by id

    def rows(self, most: int) -> Iterator[tuple[object, ...]]:
        """Yield the columns of `HEADER` for the first pairs."""
        for (a, b), kind, found_by in list(zip(self.pairs, self.kinds, self.found_by, strict=True))[:most]:
            lines = self.lines.get(a, ""), self.lines.get(b, "")
            yield (self.collection, self.method, self.title, a, b, kind, found_by, self.others, *lines)

    def markdown(self, most: int) -> Iterator[str]:
        """Yield the lines of a section of the page."""
        numbers = {kind: self.kinds.count(kind) for kind in ("false", "unjudged")}
        kinds = "".join(f", {number:,} of them {kind}" for kind, number in numbers.items() if number)
        yield f"\n{self.title.capitalize()} {len(self.pairs):,} pairs{kinds}.\n"
        for _, _, _, a, b, kind, found_by, others, one, other in self.rows(most):
            by = f"; {found_by} of {others} others find it" if found_by else ""
            yield f"- {kind}{by}\n  - `{a}`: {one}\n  - `{b}`: {other}"


def write_pair_lists(folder: Path, lists: Sequence[PairList], most: int) -> None:
    """Write ``pairs.csv``, with at most 100 pairs of a list, and ``pairs.md``, with at most `most`."""
    write_csv(folder / "pairs.csv", HEADER, (row for listed in lists for row in listed.rows(100)))
    lines = ["# Pairs that a method alone finds, and true pairs that it misses\n"]
    lines.append("Each at its best threshold; pairs that most other methods find come first.")
    for (collection, method), group in groupby(lists, lambda listed: (listed.collection, listed.method)):
        lines.append(f"\n## {method} on {collection}")
        lines += [line for listed in group for line in listed.markdown(most)]
    write_text(folder / "pairs.md", "\n".join(lines) + "\n")
