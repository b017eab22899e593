"""Every command that README, the documentation and ``--help`` show runs as written, from the root of a checkout.

Commands of a page run in their order in one folder with sample inputs. `NOT_RUN` lists the commands that no test runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard
from archives import packed, warc_record
from in_process import command, front_door

from spotsigs.doors.cli import VERBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NETWORK = re.compile(r"data=(newsframes|reuters_versions)\b.*accept_licence=true")

NOT_RUN = {
    r"^(pip|\.venv/bin/pip|python -m (pip|venv|hatchling)|\. \.venv)\b": "installs packages, as make does before tests",
    r"^(make|git|cd|mkdir|export|gunzip|xdg-open|open)\b": "a target that runs tests, or a command of the system",
    r"s3://|/shared/|^dask |engine=dask": "needs a bucket or several machines",
    r"hf://|commoncrawl|\$crawl|^spotsigs dedup crawl/ --format warc .*48GB|^docker ": "needs a network or Docker",
    r"experiment=(all|scale|table2|figure7|race)\b": "hours; the experiments have tests on small collections",
    r"-m benchmarks|-m data\.collections": "minutes to hours of measurements; benchmarks have tests of their own",
    r"^time spotsigs dedup pages.jsonl": "measures the reader's own pages",
    r"mypackage|folder/of": "names the reader's own package or folder",
    r"results/one": "names folders of the reader",
    r"^(pytest|ruff|mypy|sphinx-build)": "a tool of developers",
    r"^python (tests|notebooks)/": "a tool of developers",
    r"experiment=(figure|table1|signatures|practice)\w*( |$)(?!.*data=tiny)": "minutes",
    r"hydra/(sweeper=optuna|launcher=joblib)": "plug-ins of Hydra; test_sweeps runs them",
    r"data=(package_docs|package_docs_html|republished2?|manuals)\b": "fetched by pip, npm or apt",
}
"""Commands that are not run, by pattern, each with the reason."""


def shown(text: str) -> list[str]:
    """Return the commands of a page in order: lines of sh blocks, and lines after ``$`` of console blocks."""
    commands = []
    for kind, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.strip()
            if kind == "console":
                line = line.removeprefix("$ ") if line.startswith("$ ") else ""
            commands += [line] if line and not line.startswith("#") else []
    return commands


def of_help() -> list[str]:
    """Return the examples of ``run.py --help`` and ``spotsigs --help``."""
    config = yaml.safe_load((ROOT / "conf" / "config.yaml").read_text(encoding="utf-8"))
    lines = [line.strip() for line in config["hydra"]["help"]["template"].splitlines()]
    examples = [re.split(r" {3,}", line)[0] for line in lines if line.startswith("${program:}")]
    examples = [line.replace("${program:}", "python run.py") for line in examples]
    return examples + [example for _, _, example in VERBS.values()]


def reason_not_to_run(command: str) -> str | None:
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, command)), None)


def sources() -> dict[str, list[str]]:
    """Return the commands to run, by page; of console and help."""
    pages = {page.stem: shown(page.read_text(encoding="utf-8")) for page in PAGES} | {"help": of_help()}
    runs = {name: [word for word in words if reason_not_to_run(word) is None] for name, words in pages.items()}
    return {name: words for name, words in runs.items() if words}


@pytest.fixture
def checkout(tmp_path):
    """A checkout without results, and the inputs that the examples name."""
    folder = tmp_path / "checkout"
    kept = ("spotsigs", "baselines", "data", "experiments", "hydra_plugins", "conf", "run.py", "pyproject.toml")
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "cache")
    for name in kept:
        source = ROOT / name
        if name in ("spotsigs", "baselines"):  # linked, so that the compiled kernels next to the sources are used
            (folder / name).symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    sample(folder)
    return folder


def sample(folder: Path) -> None:
    """Write small inputs under the names that the examples use."""
    tiny = ROOT / "data/tiny"
    pages = {path.relative_to(tiny).as_posix(): path.read_bytes() for path in sorted(tiny.glob("*/*.html"))}
    records = [warc_record(f"http://site.example/{name}", content) for name, content in pages.items()]
    for name in ("crawl.warc.gz", "new.warc.gz", "crawl/a.warc.gz", "crawl-2025/a.warc.gz", "crawl-2026/a.warc.gz"):
        (folder / name).parent.mkdir(exist_ok=True)
        half = records[: len(records) // 2] if "2025" in name else records
        (folder / name).write_bytes(packed(half, ".gz"))
    for name, content in pages.items():
        (folder / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / name).write_bytes(content)
    rows = [
        {"id": name, "html": content.decode("utf-8", "replace"), "cluster": name.partition("/")[0]}
        for name, content in pages.items()
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "clusters.tsv").write_text("".join(f"{row['id']}\t{row['cluster']}\n" for row in rows))
    for name in ("pages.jsonl", "mine.jsonl", "own.jsonl", "x.jsonl"):
        (folder / name).write_bytes(lines)
    (folder / "pages.jsonl.zst").write_bytes(zstandard.compress(lines))
    (folder / "x.jsonl.gz").write_bytes(packed([lines], ".gz"))
    (folder / "page.html").write_bytes(next(iter(pages.values())))
    shutil.copytree(folder / "pages", folder / "train")
    (folder / "tests.jsonl").write_text(json.dumps({"question": "Which of the ferries is late?"}) + "\n")
    (folder / "dump").mkdir()
    table = {"url": [row["id"] for row in rows], "page": [row["html"] for row in rows]}
    pq.write_table(pa.table(table), folder / "dump" / "a.parquet")
    pq.write_table(pa.table({"id": table["url"], "body": table["page"]}), folder / "articles.parquet")


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell with this environment's Python and ``spotsigs``; a browser is never opened."""
    bin_folder = Path(sys.executable).parent
    variables = {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "BROWSER": "true", "PYTHONPATH": str(folder)}
    line = re.sub(r"^spotsigs\b|(?<=\| )spotsigs\b", f"{shlex.quote(sys.executable)} -m spotsigs", command)
    line = re.sub(r"\bzstdcat (\S+)", rf"{shlex.quote(sys.executable)} -c 'import sys, zstandard; "
                  r'sys.stdout.buffer.write(zstandard.decompress(open("\1", "rb").read()))'"'", line)  # fmt: skip
    return subprocess.run(
        line, shell=True, cwd=folder, env=os.environ | variables | environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=1200,
    )  # fmt: skip


def run_page(name: str, commands: list[str], checkout: Path) -> None:
    for line in commands:
        for path in ("kept", "kept-results"):  # each example is for an empty folder
            shutil.rmtree(checkout / path, ignore_errors=True)
        done = run(line, checkout)
        assert done.returncode == 0, f"{name}: {line}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
        assert "Traceback" not in done.stderr, line


OFFLINE = {name: [word for word in words if not NETWORK.search(word)] for name, words in sources().items()}
"""Commands without a network, by page."""


def test_the_commands_of_the_readme_run(tmp_path):
    """In this process; the long tests run them by a shell."""
    shutil.copytree(ROOT / "data/tiny", tmp_path / "data/tiny")
    lines = [line for line in OFFLINE["README"] if "data=gold" not in line and "tiny" in line]
    assert len(lines) > 1
    for line in lines:
        program, *words = shlex.split(line.removeprefix("python "), comments=True)
        done = (front_door if program == "run.py" else command)(*words, cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.long
@pytest.mark.parametrize("name", list(OFFLINE))
def test_the_commands_of_a_page_run(name, checkout):
    run_page(name, OFFLINE[name], checkout)


def test_each_command_is_run_or_has_a_reason():
    every = [word for page in PAGES for word in shown(page.read_text(encoding="utf-8"))] + of_help()
    known = ("python run.py", "spotsigs ", "zstdcat ")
    unknown = [word for word in every if reason_not_to_run(word) is None and not word.startswith(known)]
    assert unknown == []
    assert len([word for word in every if reason_not_to_run(word) is None]) > 20
