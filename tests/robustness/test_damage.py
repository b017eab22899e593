"""A store of an earlier run with any byte changed: a sentence, or what an undamaged one gives. Never a crash."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from in_process import process
from stores import MEMORY, PARTS, match_on_disk, named, save_vectors, stories, written

from spotsigs.errors import InputError
from spotsigs.outofcore.block_join import join_store
from spotsigs.outofcore.pipeline import Store
from spotsigs.records import Vectors
from spotsigs.storage import store as store_module
from spotsigs.storage.store import open_vectors, opened, sealed, unsealed
from spotsigs.workers.engines import Processes, Serial

TAU = 0.4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a collection, a finished store of it, and what is found there."""
    folder = tmp_path_factory.mktemp("made")
    rows = stories(60)
    collection = written(folder / "x.jsonl", rows)
    matched = match_on_disk(folder / "store", collection, *PARTS, TAU, Serial(), memory=MEMORY)
    page = written(folder / "page.jsonl", rows[7:8])
    return collection, folder / "store", named(matched.pairs, matched.doc_ids), page, pairs_of_page(folder, page)


def pairs_of_page(folder, page):
    """Return the pairs of a page with the documents of the store."""
    shutil.rmtree(folder / "own", ignore_errors=True)
    more = {"memory": MEMORY, "crossed": True, "against": Store.open(folder / "store")}
    return pairs_of(match_on_disk(folder / "own", page, *PARTS, TAU, Serial(), **more))


def outcome(folder, page, collection, tau):
    """Return what a later run and a question give: results, or the sentence that refuses them."""
    results = []
    for work in (
        lambda: pairs_of(match_on_disk(folder / "store", collection, *PARTS, tau, Serial(), memory=MEMORY)),
        lambda: pairs_of_page(folder, page),
    ):
        try:
            results.append(work())
        except InputError as error:
            results.append(str(error))
    return results


def pairs_of(matched):
    return named(matched.pairs, matched.doc_ids)


def flip(path, index, bit):
    content = bytearray(path.read_bytes())
    content[index] ^= 1 << bit
    path.write_bytes(content)


def check_flip(made, folder, name, rng, *, whole):
    collection, store, pairs, page, answer = made
    shutil.copytree(store, folder / "store")
    path = folder / "store" / name
    flip(path, rng.randrange(path.stat().st_size), rng.randrange(8))
    outcomes = outcome(folder, page, None if whole else collection, TAU)
    for result, expected in zip(outcomes, (pairs, answer), strict=True):
        if isinstance(result, str):
            assert str(folder / "store") in result, (name, result)
        else:
            assert result == expected, name
    shutil.rmtree(folder / "store")


def files_of(store):
    return sorted(path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file())


def test_a_flipped_bit_in_a_file_of_any_kind_is_refused_mended_or_without_effect(made, tmp_path):
    rng = random.Random(17)
    names = {Path(name).name: name for name in files_of(made[1]) if (made[1] / name).stat().st_size}
    assert len(names) > 20
    for k, name in enumerate(names.values()):
        check_flip(made, tmp_path, name, rng, whole=bool(k % 2))


@pytest.mark.long
def test_a_thousand_flipped_bits(made, tmp_path):
    rng = random.Random(2008)
    names = [name for name in files_of(made[1]) if (made[1] / name).stat().st_size]
    for k in range(1000):
        check_flip(made, tmp_path, rng.choice(names), rng, whole=bool(k % 2))


def test_workers_verify_too(made, tmp_path):
    """The parent has found it sound, then a byte changes; the workers are other processes."""
    _, store, _, _, _ = made
    shutil.copytree(store / "vectors", tmp_path / "vectors")
    engine = Processes(workers=2)
    n = len(open_vectors(tmp_path / "vectors"))
    flip(tmp_path / "vectors" / "counts.npy", -1, 0)
    with pytest.raises(InputError, match=r"counts\.npy does not match its checksum"):
        join_store(tmp_path / "vectors", tmp_path / "pairs", TAU, engine, memory=5000 * n)


def test_a_damaged_result_is_made_again(made, tmp_path):
    collection, store, pairs, _, _ = made
    shutil.copytree(store, tmp_path / "store")
    damaged = [*(tmp_path / "store").glob("pairs-*/*/i.npy"), *(tmp_path / "store").glob("segments/*/*/hashes.npy")]
    for path in damaged:
        flip(path, -1, 0)
    actual = match_on_disk(tmp_path / "store", collection, *PARTS, TAU, Serial(), memory=MEMORY)
    assert pairs_of(actual) == pairs
    for path in damaged:
        assert path.read_bytes() == (store / path.relative_to(tmp_path / "store")).read_bytes()


def test_each_process_reads_a_store_once_for_its_checksums(made, tmp_path, monkeypatch):
    _, store, _, _, _ = made
    shutil.copytree(store / "vectors", tmp_path / "vectors")
    time.sleep(0.2)  # what has just been written may still change without another time
    open_vectors(tmp_path / "vectors")
    with monkeypatch.context() as unread:
        unread.setattr(store_module, "checksum", lambda path: pytest.fail(f"{path} is read again"))
        open_vectors(tmp_path / "vectors")
    flip(tmp_path / "vectors" / "ids.npy", -1, 0)
    with pytest.raises(InputError, match=r"ids\.npy does not match its checksum"):
        open_vectors(tmp_path / "vectors")


def test_facts_next_to_the_arrays_have_a_checksum():
    facts = {"shards": 3, "text": "VisibleText()"}
    assert unsealed(sealed(facts)) == facts
    for forged in (b"{}", sealed(facts).replace(b"3", b"2"), sealed({}).replace(b"{", b'{"shards": 2,', 1)):
        with pytest.raises(ValueError, match="checksum"):
            unsealed(forged)


# few open files

MANY = """
import resource, sys
from pathlib import Path
from spotsigs.outofcore.pipeline import Store
from spotsigs.formats.folder import Folder
from spotsigs.method import Method

if __name__ == "__main__":
    limit = int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    store = Store(folder=Path(sys.argv[2]), method=Method().at(0.5), memory=2 * 10**9)
    found = store.match(Folder(path=sys.argv[1], shard_bytes=1))
    print(len(found.signatures.folders), len(found.pairs))
"""


def test_many_segments_with_few_open_files(tmp_path):
    """A store has a file for each array of each segment; a process may open a few dozen."""
    pages = tmp_path / "pages"
    pages.mkdir()
    for k, row in enumerate(stories(110)):
        (pages / f"{k:04d}.txt").write_text(row["text"])
    done = process(pages, tmp_path / "store", 64, program=["-c", MANY])
    assert done.returncode == 0, done.stderr
    segments, pairs = map(int, done.stdout.split())
    assert segments > 100
    assert pairs > 10


def test_what_the_system_denies_is_no_damage(tmp_path, monkeypatch):
    save_vectors(tmp_path / "x", Vectors.from_csr([0, 1], [0]))
    reader = opened(tmp_path / "x", "vectors")
    for error, message in (
        (OSError(24, "Too many open files"), "Too many open files; allow more open files (ulimit -n)"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (MemoryError(), "there is not enough memory"),
    ):

        def fails(*_, error=error, **__):
            raise error

        monkeypatch.setattr(np, "memmap", fails)
        with pytest.raises(InputError) as caught:
            reader.array("ids", np.int32)
        assert message in str(caught.value)
        assert "build the store again" not in str(caught.value)
        assert "the store is not changed" in str(caught.value)
