"""Manifest of committed results: the commit, command and machine of each file, and the rule for replacing one."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from experiments.choices import CONF
from experiments.claims.ledger import RETIRED
from experiments.harness.used_code import EVERY, ROOT, code_in, used_files
from experiments.show.overview import UNLISTED
from spotsigs.errors import InputError, counted
from spotsigs.reports.output_files import write_csv
from spotsigs.runs.provenance import CODE, git, git_bytes, provenance
from spotsigs.storage.atomic import move_aside, publish

NAME = "manifest.csv"
BENCHMARKS = {"bench": ("benchmarks.bench",), "race": ("benchmarks.end_to_end", "spotsigs.doors.cli")}
"""Modules that the programs use which write results and are no experiments."""
PRODUCERS = ("run.py experiment=", "bench.py", "end_to_end.py")
"""Beginnings of the commands that write results."""
DERIVED = ("README.md", "claims.csv", "claims.md")
"""Files that ``experiment=claims`` derives from the others, as a test compares."""


@dataclass(frozen=True, kw_only=True)
class ManifestRow:
    """Provenance of a file of the results."""

    file: str  # path below the folder of results
    # Command of the run, commit of its code, date in UTC, and processor with cores.
    command: str
    commit: str
    date: str
    machine: str
    seconds: float  # wall seconds of the run
    # Checksum of the file; checksums of the collections that the run read, as JSON.
    sha256: str
    inputs: str


def problems(
    about: Mapping[str, Any],
    left_out: Sequence[str] = (),
    contended: Sequence[str] = (),
    failed: Sequence[str] = (),
) -> list[str]:
    """Return the reasons why the results of a run do not replace committed ones; none if they may.

    Parameters
    ----------
    about : mapping
        Provenance, see `spotsigs.runs.provenance.provenance`.
    left_out, contended, failed : sequence of str
        Collections or methods that the run left out, those whose times other processes disturbed, and those that
        ended with an error.
    """
    sentences = [f"{name} is left out" for name in left_out]
    sentences += [f"other processes disturbed the times of {name}" for name in contended]
    sentences += [f"{name} failed" for name in failed]
    if about["commit"] is None:
        sentences.append("the code is in no checkout")
    if about["dirty"]:
        sentences.append("the code differs from its commit")
    return sentences


def record(
    results: Path,
    experiment: str,
    written: Path,
    *,
    seconds: float,
    inputs: Mapping[str, str],
    reasons: Sequence[str] = (),
    about: Mapping[str, Any] | None = None,
) -> str:
    """Move the finished results of an experiment to their folder and list them in the manifest.

    With `reasons`, see `problems`, the results are moved to ``variants/<experiment>`` instead; committed results and
    the manifest do not change.

    Parameters
    ----------
    results : Path
        Folder of results.
    experiment : str
        Name of the experiment, and of its folder.
    written : Path
        Folder with all files of the experiment, on the same file system.
    seconds : float
        Wall seconds of the run.
    inputs : mapping of str to str
        Checksum of each collection.
    reasons : sequence of str
        Why the results must not replace others.
    about : mapping, optional
        Provenance; by default the provenance of this process.

    Returns
    -------
    str
        A sentence for the terminal.
    """
    target = target_of(results, experiment, reasons)
    replaced, listed = target.exists(), (results / NAME).exists()
    _move(written, target)
    if reasons:
        return f"{target} has the results, which replace no committed ones: {'; '.join(reasons)}"
    about = provenance() if about is None else about
    machine = about["machine"]
    shared: dict[str, Any] = {
        "command": " ".join(about["command"]),
        "commit": str(about["commit"]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{machine['processor']}, {machine['cores']} cores",
        "seconds": round(seconds, 1),
        "inputs": json.dumps(dict(sorted(inputs.items()))),
    }
    rows = [
        ManifestRow(file=path.relative_to(results).as_posix(), sha256=checksum(path), **shared)
        for path in _files_below(target)
    ]
    write_rows(results, [*(row for row in read(results) if not row.file.startswith(f"{experiment}/")), *rows])
    paths = f"{target} {results / NAME}" if listed else target
    undo = f"; `git checkout -- {paths}` restores the previous ones" if replaced else ""
    return f"{target} has the results{undo}"


def _move(written: Path, target: Path) -> None:
    """Move a folder to the place of another, which is deleted only then."""
    previous = written.with_suffix(".previous")
    shutil.rmtree(previous, ignore_errors=True)
    move_aside(target, previous)
    publish(written, target)
    shutil.rmtree(previous, ignore_errors=True)


def target_of(results: Path, experiment: str, reasons: Sequence[str]) -> Path:
    """Return the folder to which `record` moves the results."""
    return (results / "variants" / experiment) if reasons else results / experiment


def read(results: Path) -> list[ManifestRow]:
    """Return the rows of the manifest; none if there is no manifest."""
    path = results / NAME
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    return [ManifestRow(**row | {"seconds": float(row["seconds"])}) for row in rows]


def write_rows(results: Path, rows: Sequence[ManifestRow]) -> None:
    """Write the manifest in the order of the files."""
    names = [field.name for field in fields(ManifestRow)]
    write_csv(
        results / NAME, names, ([asdict(row)[name] for name in names] for row in sorted(rows, key=attrgetter("file")))
    )


def check(results: Path, producers: Sequence[str] = PRODUCERS) -> list[str]:
    """Return a sentence for each violation: missing rows or files, changed content, unknown commits or commands.

    Commits are checked in a checkout with its whole history only; `producers` are beginnings of commands.
    """
    rows = {row.file: row for row in read(results)}
    present = {path.relative_to(results).as_posix(): path for path in _files_below(results)}
    present = {k: path for k, path in present.items() if k.split("/")[0] not in (NAME, *DERIVED, *UNLISTED)}
    sentences = [f"{name} has no row" for name in sorted(present.keys() - rows.keys())]
    sentences += [f"{name} has a row and no file" for name in sorted(rows.keys() - present.keys())]
    for name in sorted(present.keys() & rows.keys()):
        row = rows[name]
        if checksum(present[name]) != row.sha256:
            sentences.append(f"{name} is not the file that {row.command} wrote")
        if not row.command.startswith(tuple(producers)):
            sentences.append(f"{name} has no producer: {row.command}")
    if git("rev-parse", "--is-shallow-repository") == "false":
        for commit in sorted({row.commit for row in rows.values()}):
            if git("merge-base", "--is-ancestor", commit, "HEAD") is None:
                sentences.append(f"commit {commit} is not in the history of this one")
    return sentences


def is_current(results: Path, experiment: str) -> bool:
    """Return whether the files of an experiment are as written, and no commit since then changed code that it uses."""
    about = provenance()
    rows = {row.file: row for row in read(results) if row.file.startswith(f"{experiment}/")}
    files = {path.relative_to(results).as_posix(): path for path in _files_below(results / experiment)}
    if about["dirty"] or not rows or rows.keys() != files.keys():
        return False
    unchanged = {
        commit for commit in {row.commit for row in rows.values()} if changed_code(commit, code_of(experiment)) == []
    }
    return all(row.commit in unchanged and row.sha256 == checksum(files[name]) for name, row in rows.items())


class Change(NamedTuple):
    """A file before and after, as git describes it."""

    path: str  # path in the checkout
    blobs: tuple[str, str]  # names of both contents; zeros where there is no file


def changed_code(commit: str, code: Sequence[str] = CODE) -> list[str] | None:
    """Return the files that decide other figures than at a commit, see `code_in`; None without the history."""
    changes = changed_since(commit)
    if changes is None:
        return None
    return [change.path for change in changes if change.path.startswith(tuple(code))]


@cache
def changed_since(commit: str) -> list[Change] | None:
    """Return the changes of code since a commit, which several experiments share."""
    listed = git("diff", "--raw", "--no-abbrev", "--no-renames", commit, "HEAD", "--", *_from_top(CODE))
    return None if listed is None else _of_code(_changes(listed.splitlines()))


def since(commit: str, files: Sequence[str]) -> str:
    """Return the date of the first commit after this one that changed the code of files."""
    of_commits = ("log", "--reverse", "--raw", "--no-abbrev", "--no-renames", "--format=%cs", f"{commit}..HEAD")
    date = ""
    for line in (git(*of_commits, "--", *_from_top(files)) or "").splitlines():
        if line.startswith(":"):
            if _of_code(_changes([line])):
                break
        elif line:
            date = line
    return date


def _from_top(paths: Iterable[str]) -> list[str]:
    return [f":(top){path}" for path in paths]


def _changes(lines: Iterable[str]) -> Iterator[Change]:
    """Yield the changes that git lists: ``:modes blob blob letter``, a tab, and the path."""
    for line in lines:
        words, _, path = line.partition("\t")
        _, _, before, after, _ = words.split()
        yield Change(path, (before, after))


def _of_code(changes: Iterable[Change]) -> list[Change]:
    """Return the changes that change more than words, see `code_in`."""
    every = list(changes)
    paths = {blob: change.path for change in every for blob in change.blobs if blob.strip("0")}
    wanted = [blob for blob in paths if blob not in _CODE]
    for blob, content in zip(wanted, _contents(wanted), strict=True):
        _CODE[blob] = hashlib.sha256(code_in(paths[blob], content)).hexdigest()
    return [change for change in every if len({_CODE.get(blob) for blob in change.blobs}) > 1]


_CODE: dict[str, str] = {}
"""Checksum of what a content decides, by its name in git."""


def _contents(blobs: Sequence[str]) -> Iterator[bytes]:
    """Yield contents by their names in git, which one process reads."""
    names = "\n".join(blobs).encode()
    answer = git_bytes("cat-file", "--batch=%(objectsize)", given=names, seconds=600)
    if answer is None:
        raise InputError("git cannot read the code of earlier commits; fetch the whole history of the checkout")
    while answer:
        size, _, answer = answer.partition(b"\n")
        yield answer[: int(size)]
        answer = answer[int(size) + 1 :]


@cache
def code_of(experiment: str) -> tuple[str, ...]:
    """Return the files that an experiment uses: its configuration, and the modules of its study, methods and data.

    A benchmark, which is no experiment, uses the modules that it imports and the modules of the command that it runs.
    """
    own = CONF / "experiment" / f"{experiment}.yaml"
    if not own.is_file():
        return _names_of(used_files(*BENCHMARKS[experiment])) if experiment in BENCHMARKS else CODE
    text = own.read_text(encoding="utf-8")
    paths = [own]
    for group, usual in (("matcher", "spotsigs"), ("signature", "spotsigs"), ("text", "visible"), ("data", "gold")):
        words = {usual, *re.findall(r"[\w]+", text)}
        paths += [path for path in sorted((CONF / group).glob("*.yaml")) if path.stem in words]
    modules_of = (
        re.findall(r"(?:_target_|function|added): ([\w.]+)\.\w+", path.read_text(encoding="utf-8")) for path in paths
    )
    modules = sorted({*EVERY, *chain.from_iterable(modules_of)})
    return _names_of({*paths, *used_files(*modules)})


def _names_of(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of files within the checkout."""
    return tuple(path.relative_to(ROOT).as_posix() for path in sorted(paths))


def state(experiment: str, commit: str) -> str:
    """Return whether results of a commit are current, or since when their code has changed, and in how many files."""
    if experiment in RETIRED:
        return "finished study"
    changed = changed_code(commit, code_of(experiment))
    if not changed:
        return "unknown" if changed is None else "current"
    return f"code changed since {since(commit, changed)} ({counted(len(changed), 'file')})"


def states(results: Path) -> dict[str, str]:
    """Return the `state` of each folder of committed results."""
    commits = {row.file.split("/")[0]: row.commit for row in read(results)}
    return {name: state(name, commit) for name, commit in commits.items()}


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Print each violation, and whether the results of each experiment are current."""
    results = Path("results")
    sentences = check(results)
    lines = [f"{name}: {words}" for name, words in states(results).items()]
    sys.stdout.write("\n".join([*lines, *sentences]) + "\n")
    sys.exit(f"{len(sentences)} violations" if sentences else 0)


if __name__ == "__main__":
    main()
