"""Match generated crawls with 8 workers for half an hour: memory, open files and processes must stay flat.

`python tests/helpers/soak.py --minutes 30` writes `results/runs/soak/soak.csv` and fails where something grows.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from stores import match_on_disk

import spotsigs.workers.engines
from spotsigs.formats.jsonl import Jsonl
from spotsigs.outofcore.pipeline import LEAST, PROGRAM
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText

WORKERS = 8
PAGES = 3000
COLUMNS = ("seconds", "crawls", "memory_mb", "open_files", "processes")
GROWTH = 1.1
"""Median of the last quarter over the median of the second one, beyond which something leaks."""


def write_crawl(path: Path, seed: int) -> None:
    """Write pages, every fourth of them new and the others edited copies, some of them damaged."""
    rng = random.Random(seed)
    words = [f"w{k}" for k in range(5000)]
    page: list[str] = []
    with path.open("w", encoding="utf-8") as out:
        for k in range(PAGES):
            if k % 4 == 0:
                page = [rng.choice(("the", "a", "is", "was", rng.choice(words))) for _ in range(rng.randint(50, 400))]
            page[rng.randrange(len(page))] = rng.choice(words)
            out.write(json.dumps({"id": str(k), "html": f"<p>{' '.join(page)}</p>"}) + "\n" if k % 50 else "{\n")


def sample(began: float, crawls: int) -> tuple[float, ...]:
    """Return a row of the table, over this process and all that it started."""
    memory = files = number = 0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.Error):
            memory += process.memory_info().rss
            files += process.num_fds()
            number += 1
    return round(time.monotonic() - began, 1), crawls, round(memory / 1e6, 1), files, number


def soak(minutes: float) -> list[tuple[float, ...]]:
    """Match one crawl after the other; return the samples."""
    spotsigs.workers.engines.all_cores = lambda: WORKERS  # 8 processes on machines with fewer cores, too
    engine = spotsigs.workers.engines.Processes(workers=WORKERS)
    began, crawls, done = time.monotonic(), 0, threading.Event()
    rows: list[tuple[float, ...]] = []

    def watch() -> None:
        while not done.wait(2):
            rows.append(sample(began, crawls))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            while time.monotonic() - began < 60 * minutes:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    write_crawl(Path(place, "x.jsonl"), crawls)
                    matched = match_on_disk(
                        Path(place, "store"),
                        Jsonl(path=f"{place}/x.jsonl", shard_bytes=100_000),
                        VisibleText(),
                        SpotSignatures(),
                        IdfFilter(),
                        0.44,
                        engine,
                        memory=(WORKERS + 1) * (PROGRAM + LEAST),
                    )
                    pairs = matched.pairs
                    if len(pairs) < PAGES // 8 or sum(1 for _ in matched.signatures.skipped) != PAGES // 50:
                        raise RuntimeError(f"crawl {crawls} has {len(pairs)} pairs")
                crawls += 1
            left = list(Path(folder).iterdir())
    finally:
        done.set()
        watcher.join()
    if left:
        raise RuntimeError(f"{len(left)} files are left")
    return rows


def main() -> None:
    """Match crawls, write the samples, and compare the second quarter with the last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--folder", type=Path, default=Path("results/runs/soak"))
    given = parser.parse_args()
    rows = soak(given.minutes)
    given.folder.mkdir(parents=True, exist_ok=True)
    with (given.folder / "soak.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([COLUMNS, *rows])
    quarter = len(rows) // 4
    lines = [f"{rows[-1][1]} crawls of {PAGES} pages in {rows[-1][0] / 60:.1f} minutes by {WORKERS} workers"]
    grows = False
    for place, name in enumerate(COLUMNS[2:], start=2):
        early, late = (
            statistics.median(row[place] for row in part) for part in (rows[quarter : 2 * quarter], rows[-quarter:])
        )
        grows |= late > GROWTH * early
        lines.append(f"{name}: median {early:,.0f} in the second quarter, {late:,.0f} in the last")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit("something grows" if grows else 0)


if __name__ == "__main__":
    main()
