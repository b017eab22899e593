"""Whoever watches the terminal sees something move."""

from __future__ import annotations

import io
import itertools
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from archives import warc_record

from spotsigs import progress

ROOT = Path(__file__).parents[2]
TINY = ROOT / "data" / "tiny"

SILENT_SECONDS = 2.0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen(text):
    """Return what a terminal shows after a text of one-line updates."""
    shown = [""]
    for sign in text:
        if sign == "\r":
            column = 0
        elif sign == "\n":
            shown.append("")
            column = 0
        else:
            column = column if shown[-1] else 0
            shown[-1] = shown[-1][:column] + sign + shown[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in shown]


@pytest.fixture
def line(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    return progress.LiveLine(Terminal())


def test_the_line_says_what_is_done_and_goes(line):
    line.doing("reading")
    line.beat()
    assert screen(line.out.getvalue()) == ["reading, 0 s"]
    line.compiling, line.compiled = 1, 3
    line.beat()
    assert screen(line.out.getvalue()) == ["compiling kernel 3, 0 s"]
    shared = progress.Shared(line.out, line)
    print("a result", file=shared)
    line.beat()
    line.end()
    assert screen(line.out.getvalue()) == ["a result", ""]


def test_bars_go_on_and_no_line_is_drawn_over_them(line, monkeypatch):
    from tqdm import tqdm

    monkeypatch.setattr(progress, "PERIOD", 0.05)
    with tqdm(total=3, desc="reading", file=progress.Shared(line.out, line), mininterval=9) as bar:
        time.sleep(0.06)
        before = len(line.out.getvalue())
        line.beat()
        assert "reading:   0%" in line.out.getvalue()[before:]
        assert "starting" not in line.out.getvalue()
        bar.update()


def test_nothing_is_said_while_others_write(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD", 60.0)
    line = progress.LiveLine(Terminal())
    line.beat()
    assert line.out.getvalue() == ""


def test_nothing_is_begun_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress.begin()
    assert type(sys.stderr) is io.StringIO
    progress.doing("anything")


def watched(words, cwd, **environment):
    """Return the longest time for which a command on a terminal said nothing, what came before it, and all it said."""
    import pty

    master, slave = pty.openpty()
    began = time.monotonic()
    running = subprocess.Popen(
        [sys.executable, *map(str, words)], cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    os.close(slave)
    said, times = [], [began]
    while True:
        if select.select([master], [], [], 0.05)[0]:
            try:
                piece = os.read(master, 1 << 16)
            except OSError:
                piece = b""
            if not piece:
                break
            said.append(piece)
            times.append(time.monotonic())
    code = running.wait()
    os.close(master)
    text = b"".join(said).decode()
    assert code == 0, text
    times.append(time.monotonic())
    gaps = [after - before for before, after in itertools.pairwise(times)]
    worst = max(range(len(gaps)), key=gaps.__getitem__)
    return gaps[worst], b"".join(said[:worst])[-200:].decode("utf-8", "replace"), text


def archive(folder):
    pages = [page.read_text("utf-8", "replace") for page in sorted(TINY.rglob("*.html"))]
    records = (
        warc_record(f"http://x/{turn}/{k}", f"{page}<p>The edition of the {turn}th is here.</p>".encode())
        for turn in range(8)
        for k, page in enumerate(pages)
    )
    (folder / "crawl.warc").write_bytes(b"".join(records))
    return folder / "crawl.warc"


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
@pytest.mark.parametrize("command", ["dedup", "dedup within a budget", "run"])
def test_nothing_is_silent_for_longer_than_two_seconds(tmp_path, command):
    """Cold, when kernels are compiled, and warm."""
    kernels = tmp_path / "kernels"
    for state in ("cold", "warm"):
        out = tmp_path / state
        words = {
            "dedup": ["-m", "spotsigs", "dedup", archive(tmp_path), "--out", out, "--workers", 2],
            "dedup within a budget": [
                "-m", "spotsigs", "dedup", archive(tmp_path), "--out", out, "--memory", "2GB", "--workers", 2,
            ],
            "run": [ROOT / "run.py", "data=tiny", f"hydra.run.dir={out}"],
        }[command]  # fmt: skip
        gap, before, text = watched(words, tmp_path, NUMBA_CACHE_DIR=str(kernels))
        assert gap < SILENT_SECONDS, f"{state}: nothing for {gap:.1f} s after {before!r}"
        assert ("compiling" in text) == (state == "cold")
        lines = screen(text.replace("\r\n", "\n"))
        assert any(re.match(r"[\d,]+ pages, [\d,]+ removed .* kept -> ", line) for line in lines), lines
