"""Files that prove which files this program wrote, so that no other file is ever replaced or deleted.

The manifest of a copy lists its files; the file `RUN` is in every folder of results.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spotsigs.errors import InputError, printable
from spotsigs.storage.locations import is_remote, read, remote_states, write_remote

MANIFEST = ".spotsigs-copy.json"
"""Name of the manifest in the folder of a copy. Readers of folders skip hidden files."""

KIND = "copy of spotsigs"

RUN = "run.json"
"""Command, commit and versions of a run, in the folder of its results."""

COMPLETE = "metrics.json"
"""The file that is written last: a folder without it does not contain all results of one run."""

_OF_RUN = {"command", "commit", "versions"}

State = list[Any]
"""Size of a file and, as a file system has it, the time of its last change or its checksum."""


def states_of(folder: Path) -> dict[str, State | None]:
    """Return the state of each file below a folder by its name; None of a link and of what is no regular file.

    Raises
    ------
    OSError
        If a folder cannot be read.
    """
    if is_remote(folder):
        return {**remote_states(folder)}
    states: dict[str, State | None] = {}

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*names, *links):
            facts = os.lstat(path := os.path.join(parent, name))
            known = [facts.st_size, facts.st_mtime_ns] if stat.S_ISREG(facts.st_mode) else None
            states[Path(os.path.relpath(path, folder)).as_posix()] = known
    return states


def write_manifest(folder: Path, expected: Iterable[str] = (), known: Mapping[str, State | None] | None = None) -> None:
    """Write the manifest of a folder all of whose files this program wrote.

    Parameters
    ----------
    folder : Path
        The folder of the copy.
    expected : iterable of str, optional
        Names of files that will be written and have no state yet.
    known : mapping of str to State, optional
        Files of the folder with their states; by default those that are there.
    """
    files = {name: state for name, state in (known or states_of(folder)).items() if name != MANIFEST}
    content = json.dumps({"kind": KIND, "files": files, "expected": sorted(expected)}, indent=0).encode()
    if is_remote(folder):
        write_remote(folder / MANIFEST, content)
        return
    try:
        with (folder / MANIFEST).open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise InputError(f"a file of the input is named {MANIFEST}, as the manifest of a copy; rename it") from None


def why_foreign(folder: Path) -> str | None:
    """Return why a folder may not be replaced, as the end of a sentence about it; None if all its files are ours."""
    try:
        files = states_of(folder)
        if files.pop(MANIFEST, None) is None:
            return "is not a copy that spotsigs wrote" if files else None
        manifest = json.loads(read(folder / MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
            return f"has a damaged manifest {MANIFEST}"
        written, expected = dict(manifest["files"]), set(manifest["expected"])
    except OSError as error:
        return f"cannot be searched ({os.strerror(error.errno) if error.errno else error})"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"has a damaged manifest {MANIFEST}"
    for name, state in sorted(files.items()):
        if name in expected:
            continue
        if name not in written:
            return f"contains {printable(name)}, which spotsigs did not write"
        if state is None or state != written[name]:
            return f"contains {printable(name)}, which has changed since spotsigs wrote it"
    return None


def is_of_run(folder: Path) -> bool:
    """Return whether a folder contains results of a run of this program."""
    try:
        run = json.loads(read(folder / RUN))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(run, dict) and run.keys() >= _OF_RUN


def require_of_run(folder: Path, names: Sequence[str]) -> None:
    """Refuse to replace files of a folder of results that this program did not write."""
    there = remote_states(folder) if is_remote(folder) else ()
    taken = [name for name in names if name in there or (not is_remote(folder) and os.path.lexists(folder / name))]
    if taken and not is_of_run(folder):
        found = f"{folder} contains {taken[0]}, which spotsigs did not write"
        raise InputError(f"{found}; name another folder for the results")
