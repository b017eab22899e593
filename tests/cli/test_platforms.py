"""The wheel outside of the checkout; no home, no git; paths with spaces and letters beyond ASCII."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import packed, warc_record
from in_process import ROOT, process

from spotsigs.arrays import kernel_cache

USE = """
import spotsigs
from pathlib import Path
assert "{path}" in spotsigs.__file__, spotsigs.__file__
page = "The council has approved the plan for a new bridge that will be built by the end of the year."
pairs = spotsigs.near_duplicates([page, "A win for the home side.", "<p>" + page + "</p>"])
assert [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j)] == [(0, 2)]
from spotsigs.formats.folder import Folder
from spotsigs.formats.jsonl import Jsonl
from spotsigs.reports.cluster_page import write_cluster_page
vectors = spotsigs.Vectors.from_csr([0, 1, 2], [0, 0])
assert len(spotsigs.SpotSigs(tau=0.5)(spotsigs.Corpus(vectors))) == 1
pairs = spotsigs.self_join(vectors, 0.5)
write_cluster_page("clusters.html", ["a", "b"], pairs, spotsigs.cluster(pairs), ["x", "x"])
print("used")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("needs hatchling, which builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "cache", "results", ".git", ".venv", "*.sqlite", "mutants")
    shutil.copytree(ROOT, source, ignore=ignored)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=source, check=True
    )
    [path] = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_packages_and_their_data(wheel):
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"spotsigs"}
    for name in ("py.typed", "signatures/stopwords/smart.txt", "reports/templates/viewer.js", "runs/runner.py"):
        assert f"spotsigs/{name}" in names
    assert not [name for name in names if "cache" in name and not name.endswith("kernel_cache.py")]


def installed(wheel, folder):
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder)  # what pip does with a wheel of pure Python
    return folder


def use(path, cwd, *before, **environment):
    """Use the library as it is installed in a folder, in a process that does not see the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
    done = subprocess.run(
        [*before, sys.executable, "-P", "-c", USE.format(path=path.name)],
        cwd=cwd,
        env=kept | {"PYTHONPATH": str(path)} | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "used\n"


@pytest.mark.long
def test_the_wheel_works_outside_of_the_checkout_in_a_path_with_spaces_and_letters(wheel, tmp_path):
    path = installed(wheel, tmp_path / "ein Ordner für 文書")
    (tmp_path / "work").mkdir()
    use(path, tmp_path / "work")
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"clusters.html"}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_neither_package_nor_home_folder_is_writable(wheel, tmp_path):
    path = installed(wheel, tmp_path / "site")
    home, work, temporary = (tmp_path / name for name in ("home", "work", "tmp"))
    for folder in (home, work, temporary):
        folder.mkdir()
    for folder in (home, *path.rglob("*"), path):
        folder.chmod(0o555)
    without = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]  # permissions then apply to root, too
    if subprocess.run([*without, "touch", str(home / "x")], capture_output=True).returncode == 0:
        pytest.skip("permissions do not hold here")
    try:
        use(path, work, *without, HOME=str(home), TMPDIR=str(temporary), XDG_CACHE_HOME="")
        [kernels] = temporary.iterdir()
        assert kernels.name == f"spotsigs-kernels-{os.getuid()}"
        assert kernels.stat().st_mode & 0o077 == 0
        kernels.chmod(0o777)  # as another user might have prepared it
        use(path, work, *without, HOME=str(home), TMPDIR=str(temporary), XDG_CACHE_HOME="")
        assert len(list(temporary.iterdir())) == 2
    finally:
        for folder in (path, *path.rglob("*")):
            folder.chmod(0o755)


def test_a_checkout_without_git_and_a_path_with_spaces_and_letters(tmp_path):
    path = tmp_path / "ein Ordner für 文書"
    path.mkdir()
    for name in ("spotsigs", "baselines", "data", "experiments", "hydra_plugins", "conf"):
        shutil.copytree(ROOT / name, path / name, ignore=shutil.ignore_patterns("cache"))
    shutil.copy(ROOT / "run.py", path)
    folder = path / "results (1)"
    words, alone = ("data=tiny", "engine=serial", f"hydra.run.dir='{folder}'"), {"PATH": "", "PYTHONPATH": ""}
    done = process(*words, program=("run.py",), cwd=path, environment=alone)
    assert done.returncode == 0, done.stderr
    about = json.loads((folder / "run.json").read_text())
    assert about["commit"] is None
    assert json.loads((folder / "metrics.json").read_text())["pairs"] > 0


KERNEL = """
from typing import NamedTuple
import numpy as np
from numba import njit
from pathlib import Path
from spotsigs.arrays.kernel_cache import delete_outdated_kernels

delete_outdated_kernels(Path(__file__).parent)


class {name}(NamedTuple):
    ids: object


@njit(cache=True)
def total(rows):
    return rows.ids.sum()


print(total({name}(np.arange(4))))
"""


@pytest.mark.parametrize("cached", ["", "elsewhere"])
def test_kernels_of_other_sources_are_compiled_again(tmp_path, cached):
    module = tmp_path / "kernels.py"
    for name in ("Former", "Renamed"):  # an upgrade keeps the first one's index
        module.write_text(KERNEL.format(name=name))
        variables = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": cached and str(tmp_path / cached)}
        done = process(program=("-c", "import kernels"), cwd=tmp_path, environment=variables)
        assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr
    assert len(list(tmp_path.rglob("*.nbi"))) == 1


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Make the compiler's usual cache folders read-only; return the temporary folder."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(kernel_cache, "__file__", str(tmp_path / "file" / "kernel_cache.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(kernel_cache.KEY, "removed next, and when the test ends")
    monkeypatch.delenv(kernel_cache.KEY)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the compiler's own places are left alone")
class TestKernelCache:
    def test_a_closed_folder_of_the_user_is_made_and_taken_again(self, nowhere, monkeypatch):
        kernel_cache.set_cache_folder()
        path = nowhere / f"spotsigs-kernels-{os.getuid()}"
        assert os.environ.pop(kernel_cache.KEY) == str(path)
        assert path.stat().st_mode & 0o777 == 0o700
        reloaded = []
        numba = SimpleNamespace(core=SimpleNamespace(config=SimpleNamespace(reload_config=lambda: reloaded.append(1))))
        monkeypatch.setitem(sys.modules, "numba", numba)
        kernel_cache.set_cache_folder()
        assert (os.environ[kernel_cache.KEY], reloaded) == (str(path), [1])

    @pytest.mark.parametrize("prepared", ["open", "link", "file"])
    def test_one_that_others_may_have_prepared_is_not_taken(self, nowhere, prepared):
        path = nowhere / f"spotsigs-kernels-{os.getuid()}"
        if prepared == "open":
            path.mkdir()
            path.chmod(0o777)
        elif prepared == "link":
            (nowhere / "theirs").mkdir(mode=0o700)
            path.symlink_to(nowhere / "theirs")
        else:
            path.touch()
        kernel_cache.set_cache_folder()
        actual = Path(os.environ[kernel_cache.KEY])
        assert actual != path
        assert (actual.parent, actual.stat().st_mode & 0o777, list(actual.iterdir())) == (nowhere, 0o700, [])

    def test_a_writable_or_configured_cache_folder_is_not_changed(self, nowhere, monkeypatch):
        monkeypatch.setenv(kernel_cache.KEY, "given")
        kernel_cache.set_cache_folder()
        assert os.environ[kernel_cache.KEY] == "given"
        monkeypatch.delenv(kernel_cache.KEY)
        monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere / "cache"))
        kernel_cache.set_cache_folder()
        assert kernel_cache.KEY not in os.environ


@pytest.mark.long
def test_pip_installs_the_wheel_and_the_command_reads_archives_and_tables(wheel, tmp_path):
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    installing = [programs / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel]
    done = subprocess.run(list(map(str, installing)), capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip(f"needs a package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    pages = {path.name: path.read_bytes() for path in sorted((ROOT / "data" / "tiny" / "ferry").glob("*.html"))}
    records = [warc_record(f"https://news.example/{name}", page) for name, page in pages.items()]
    (tmp_path / "pages.warc.gz").write_bytes(packed(records, ".gz"))
    texts = [page.decode("utf-8", "replace") for page in pages.values()]
    pq.write_table(pa.table({"url": list(pages), "html": texts}), tmp_path / "pages.parquet")
    removed = []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for name, *more in (("pages.warc.gz",), ("pages.parquet", "--id", "url")):
        command = [programs / "spotsigs", "dedup", name, *more, "--out", f"kept-{name}", "--tau", "0.25"]
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"{len(pages)} pages, " in done.stdout
        assert (tmp_path / f"kept-{name}" / name).is_file()
        listed = (tmp_path / f"kept-{name}-results" / "removed.csv").read_text().splitlines()[1:]
        removed.append([line.split(",")[0].rpartition("/")[2] for line in listed])
    assert removed[0] == removed[1]
    assert removed[0]
