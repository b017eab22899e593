"""Documentation of packages as a collection: no code of a package runs, and checksums are compared."""

import hashlib
import subprocess

import pytest
from archives import read, tarred

from data.collections import fetching
from data.collections.package_docs import PackageDocs
from spotsigs.errors import InputError


def sdist(folder, version, files):
    """Write the source distribution of a package whose setup.py must never run."""
    info = f"Metadata-Version: 1.1\nName: Some-Docs\nVersion: {version}\n"
    files = {"PKG-INFO": info, "setup.py": "raise SystemExit('code of the package ran')"} | files
    (folder / f"some_docs-{version}.tar.gz").write_bytes(tarred(files, f"some_docs-{version}"))


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return a folder that is all pip can see."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def test_package_docs(tmp_path, index, monkeypatch):
    sdist(index, "1.0", {"docs/a.txt": "the a", "docs/deep/b.txt": "the b", "docs/x.png": "x", "src/a.txt": "no"})
    newer = {"docs/a.txt": "the a", "docs/deep/b.txt": "new b", "docs/c.txt": "the b", "docs/../e.txt": "e"}
    sdist(index, "2.0", newer)
    collection = PackageDocs(package="Some-Docs", versions=["1.0", "2.0"], cache=str(tmp_path / "cache"))
    actual = read(collection)
    expected = {"1.0/a.txt": "the a", "1.0/deep/b.txt": "the b", "2.0/deep/b.txt": "new b"}
    assert {document.id: document.content for document in actual} == expected
    assert [document.cluster for document in actual] == [name.partition("/")[2] for name in expected]
    assert {document.media_type for document in actual} == {"text/plain"}
    monkeypatch.setattr(subprocess, "run", None)
    assert read(collection) == actual


def test_package_docs_without_network(tmp_path, index):
    collection = PackageDocs(package="Some-Docs", versions=["1.0"], cache=str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"pip could not fetch .* Some-Docs 1.0 \(is there a network\?\)") as raised:
        collection.shards()
    place = tmp_path / "cache" / "sdists" / "some-docs-1.0.tar.gz"
    assert str(place) in str(raised.value)
    assert [p.name for p in (tmp_path / "cache").rglob("*")] == ["sdists"]


def test_package_docs_checks_its_checksum(tmp_path, index, monkeypatch):
    sdist(index, "1.0", {"docs/a.txt": "the a"})
    registry = tmp_path / "registry.txt"
    registry.write_text(f"some-docs-1.0.tar.gz {'0' * 64} MIT pip\n")
    monkeypatch.setattr(fetching, "REGISTRY", registry)
    fetching.checksums_by_name.cache_clear()
    collection = PackageDocs(package="Some-Docs", versions=["1.0"], cache=str(tmp_path / "cache"))
    try:
        with pytest.raises(InputError, match=r"HASHES|hash"):
            collection.shards()
        place = tmp_path / "cache" / "sdists" / "some-docs-1.0.tar.gz"
        place.write_bytes(next(index.iterdir()).read_bytes())
        with pytest.raises(InputError, match=r"registry.txt lists 0000.*; delete it to fetch it again"):
            collection.shards()
        registry.write_text(f"some-docs-1.0.tar.gz {hashlib.sha256(place.read_bytes()).hexdigest()} MIT pip\n")
        fetching.checksums_by_name.cache_clear()
        assert len(read(collection)) == 1
    finally:
        fetching.checksums_by_name.cache_clear()


def test_package_docs_refuses_a_release_without_documentation(tmp_path, index):
    sdist(index, "1.0", {"src/a.txt": "x"})
    collection = PackageDocs(package="Some-Docs", versions=["1.0"], cache=str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"contains no new .txt or .rst under docs/"):
        collection.shards()
    assert not list((tmp_path / "cache").glob("*.jsonl"))
