"""Growth of each stage of ``spotsigs dedup`` with twice as many documents, on hostile inputs of many shapes.

``python -m benchmarks.growth`` writes each shape with n and with 2n documents, runs the command on both with one
worker, and reads the processor seconds of each stage from its log. Work that grows with the number of documents
doubles. A factor above `MOST` is printed with its exponent, the logarithm to base 2, and docs/scaling.md names it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import log2
from pathlib import Path
from typing import NamedTuple

MOST = 2.3
"""Largest growth of the processor seconds of a stage whose work is proportional to the number of documents."""

LEAST_SECONDS = 0.3
"""Processor seconds of 2n documents below which noise decides."""

STOPS = "the a an is was were will be has have had can could do did of and to in for with that this".split()
MENU = "".join(f"<a href='/{k}'>section {k}</a> " for k in range(12))


def prose(rng: random.Random, spots: int) -> str:
    """Return text with so many spots, whose words hardly any other text has."""
    return " ".join(f"the w{rng.getrandbits(40):x} is w{rng.getrandbits(40):x}" for _ in range(spots // 2))


def jsonl(folder: Path, rows: Iterator[dict[str, str]]) -> list[str]:
    """Write rows, and return the words that name the input."""
    with (folder / "x.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return [str(folder / "x.jsonl")]


def texts(folder: Path, contents: Iterator[str]) -> list[str]:
    """Write texts without links."""
    return jsonl(folder, ({"id": str(k), "text": text} for k, text in enumerate(contents)))


def pages(folder: Path, named: Iterator[tuple[str, str]]) -> list[str]:
    """Write pages by their URLs."""
    return [*jsonl(folder, ({"url": url, "html": html} for url, html in named)), "--html", "html"]


def record(uri: str, body: bytes, length: int | None = None) -> bytes:
    """Return a WARC record, which may declare a false length."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {uri}\r\n"
    head += f"Content-Type: application/http; msgtype=response\r\nContent-Length: {length or len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def false_lengths(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Each record declares to end in the body of a later one."""
    size = len(record("http://x/0", b"<p>" + b"w" * 360))
    lengths = [(rng.randrange(k, n) - k) * size + 300 for k in range(n)]
    with (folder / "x.warc").open("wb") as file:
        file.write(record("http://x/first", b"<p>one page"))
        file.writelines(record("http://x/0", b"<p>" + b"w" * 360, length) for length in lengths)
    return [str(folder / "x.warc")]


def records_in_bodies(folder: Path, n: int, rng: random.Random) -> list[str]:
    """The body of each page has compressed records, as bytes that its own compression stores."""
    with (folder / "x.warc.gz").open("wb") as file:
        for k in range(n):
            inner = b"".join(gzip.compress(record(f"http://false/{k}", rng.randbytes(60)), 0) for _ in range(8))
            file.write(gzip.compress(record(f"http://x/{k}", b"<!--" + inner + b"-->" + prose(rng, 40).encode()), 0))
    return [str(folder / "x.warc.gz")]


def unclosed_quote(folder: Path, n: int, rng: random.Random) -> list[str]:
    """A quote in the first row of a CSV file is not closed."""
    with (folder / "x.csv").open("w", encoding="utf-8") as file:
        file.write('id,text\n0,"the text\n')
        file.writelines(f"{k},{prose(rng, 6)}\n" for k in range(1, 10 * n))
    return [str(folder / "x.csv")]


def shared_paragraph(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Texts of 400 spots, of which 38 % are one paragraph, so that no pair reaches a threshold of .25."""
    paragraph = prose(rng, 152)
    return [*texts(folder, (f"{prose(rng, 248)} {paragraph}" for _ in range(n))), "--tau", "0.25", "--idf-min", "0"]


def one_folder(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Pages of one folder whose pairs are between the threshold and the one for folders."""
    pools = [[prose(rng, 2) for _ in range(12)] for _ in range(20)]
    html = (f"{MENU}<p>{' '.join(' '.join(rng.sample(pool, 6)) for pool in pools)}</p>" for _ in range(n))
    named = ((f"http://one.example/folder/{k}", page) for k, page in enumerate(html))
    return [*pages(folder, named), "--idf-min", "0"]


def agreeing_spots(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Texts whose spots agree while their runs of five words do not."""
    chains = [(f"w{k}a", f"w{k}b", f"w{k}c") for k in range(60)]

    def text() -> str:
        return " ".join(
            f"{rng.choice(STOPS[:3])} {a} {rng.choice(STOPS)} {b} {rng.choice(STOPS)} {c}" for a, b, c in chains
        )

    return [*texts(folder, (f"{text()} {prose(rng, 20)}" for _ in range(n))), "--tau", "0.25", "--idf-min", "0"]


def all_equal(folder: Path, n: int, rng: random.Random) -> list[str]:
    """All pages are the same."""
    page = f"{MENU}<p>{prose(rng, 100)}</p>"
    return pages(folder, ((f"http://s{k % 9}.example/{k}", page) for k in range(n)))


def half_a_cluster(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Half of the pages differ in a number alone; the others are distinct."""
    story = prose(rng, 100)
    html = (f"{MENU}<p>{story if k % 2 else prose(rng, 100)} number {k}</p>" for k in range(n))
    return pages(folder, ((f"http://s{k % 9}.example/{k}", page) for k, page in enumerate(html)))


def one_host(folder: Path, n: int, rng: random.Random) -> list[str]:
    """All pages are of one host; each has links of its own beside the links of the menu."""
    html = (
        f"{MENU}<p>{prose(rng, 100)}</p>" + "".join(f"<a href='{k}-{j}'>{k} {j}</a>" for j in range(20))
        for k in range(n)
    )
    return pages(folder, ((f"http://one.example/{k % 50}/{k}", page) for k, page in enumerate(html)))


def no_prose(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Pages of words without stopwords."""
    html = (f"{MENU}<p>{' '.join(f'w{rng.getrandbits(30):x}' for _ in range(150))}</p>" for _ in range(n))
    return pages(folder, ((f"http://s{k % 9}.example/{k}", page) for k, page in enumerate(html)))


def equal_links(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Pages of many hosts with the same links, and texts that differ."""
    html = (f"{MENU * 8}<p>{prose(rng, 60)}</p>" for _ in range(n))
    return pages(folder, ((f"http://s{k % (n // 4)}.example/{k}", page) for k, page in enumerate(html)))


def chain(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Each text shares half of its spots with the next one."""
    parts = [prose(rng, 50) for _ in range(n + 1)]
    return [*texts(folder, (f"{parts[k]} {parts[k + 1]}" for k in range(n))), "--tau", "0.3"]


def endless_markup(folder: Path, n: int, rng: random.Random) -> list[str]:
    """Pages of nested elements and comments that nothing ends."""
    html = (f"{'<div>' * 300}<p>{prose(rng, 40)}{'<!-- <b ' * 100}" for _ in range(n))
    return pages(folder, ((f"http://s{k % 9}.example/{k}", page) for k, page in enumerate(html)))


Shape = Callable[[Path, int, random.Random], list[str]]
SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (
        false_lengths,
        records_in_bodies,
        unclosed_quote,
        shared_paragraph,
        one_folder,
        agreeing_spots,
        all_equal,
        half_a_cluster,
        one_host,
        no_prose,
        equal_links,
        chain,
        endless_markup,
    )
}


class Growth(NamedTuple):
    """Processor seconds of a stage with n and with 2n documents."""

    shape: str
    stage: str
    documents: int
    seconds: float
    seconds_twice: float

    @property
    def factor(self) -> float:
        """By how much they grow."""
        return self.seconds_twice / max(self.seconds, 1e-3)

    def row(self) -> str:
        """Return a row of a Markdown table."""
        more = f" | {log2(self.factor):.1f}" if self.factor > MOST else " | "
        names = f"| {self.shape.replace('_', ' ')} | {self.stage} | {self.documents:,}"
        return f"{names} | {self.seconds:.2f} | {self.seconds_twice:.2f} | {self.factor:.2f}{more} |"


def seconds_of(shape: str, n: int, options: Sequence[str], folder: Path) -> dict[str, float]:
    """Return the processor seconds of each stage of a run, and of all together."""
    folder.mkdir()
    words = SHAPES[shape](folder, n, random.Random(48))
    command = [sys.executable, "-m", "spotsigs", "dedup", *words, "--workers", "1", "--log", "json", *options]
    out = ["--out", "none", "--results", str(folder / "results")]
    done = subprocess.run([*command, *out], capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode:
        raise SystemExit(f"{shape}, {n} documents: {done.stderr}")
    seconds: defaultdict[str, float] = defaultdict(float)
    for line in map(json.loads, done.stderr.splitlines()):
        if "core_seconds" in line:
            seconds[line["stage"]] += line["core_seconds"]
            seconds["all"] += line["core_seconds"]
    return seconds


def growth_of(shape: str, n: int, options: Sequence[str]) -> Iterator[Growth]:
    """Yield the growth of each stage that takes long enough, once kernels are compiled."""
    with tempfile.TemporaryDirectory() as folder:
        seconds_of(shape, 100, options, Path(folder, "compiled"))
        once, twice = (seconds_of(shape, k * n, options, Path(folder, str(k))) for k in (1, 2))
    for stage, seconds in twice.items():
        if seconds >= LEAST_SECONDS:
            yield Growth(shape, stage, n, once.get(stage, 0.0), seconds)


def main() -> None:
    """Print a table of the stages, and those that grow faster than the number of documents."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=4000, help="The number n of documents.")
    parser.add_argument("--shape", nargs="*", choices=SHAPES, default=list(SHAPES), help="Measure these shapes only.")
    parser.add_argument("--memory", help="Run on disk within this budget.")
    args = parser.parse_args()
    options = [] if args.memory is None else ["--memory", args.memory]
    print("| shape | stage | n | core s, n | core s, 2n | factor | exponent |\n|---|---|---|---|---|---|---|")
    for shape in args.shape:
        for growth in growth_of(shape, args.documents, options):
            print(growth.row(), flush=True)


if __name__ == "__main__":
    main()
