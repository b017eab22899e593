"""The built-in collection: its form and its bytes, which were fixed before any detector read them."""

import hashlib
import pickle
from pathlib import Path

import pytest
from in_process import process

from data.collections.gold import Gold
from data.collections.gold.language import gerund
from data.collections.gold.pages import GoldPage, generate

SMALL = {"seed": 2008, "pages": 60, "clusters": 6}
# The same bytes on every machine and Python: where one of these changes, results on the collection change with it.
SMALL_SHA256 = "68e7daa2f843f9ec12de114bd752c2a9297644c21a34d5b1621751edfbb36524"
FULL_SHA256 = "e0ae840d8bd741f07355f3b1a6fae3e3a343bb06da4c97c3558170922560d329"


def sha256(pages: list[GoldPage]) -> str:
    digest = hashlib.sha256()
    for page in pages:
        digest.update(f"{page.cluster}/{page.name}\0".encode() + page.content)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def small() -> list[GoldPage]:
    return list(generate(**SMALL))


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


# --- form -------------------------------------------------------------------------------------------------------------


def test_documents_are_the_pages_in_order(cache, small):
    shards = pickle.loads(pickle.dumps(Gold(**SMALL, cache=cache).shards()))
    documents = [document for shard in shards for document in shard()]
    assert [document.id for document in documents] == [f"{page.cluster}/{page.name}" for page in small]
    assert [document.content for document in documents] == [page.content for page in small]
    assert [document.cluster for document in documents] == [page.cluster for page in small]
    assert [document.id for document in documents] == sorted({document.id for document in documents})


def test_generated_once(cache, monkeypatch):
    first = Gold(**SMALL, cache=cache).shards()
    monkeypatch.setattr("data.collections.gold.pages.generate", None)
    assert [shard.args for shard in Gold(**SMALL, cache=cache).shards()] == [shard.args for shard in first]


def test_shards_hold_about_so_many_bytes(cache, monkeypatch):
    monkeypatch.setattr("data.collections.gold.SHARD_BYTES", 40_000)
    sizes = [sum(len(document.content) for document in shard()) for shard in Gold(**SMALL, cache=cache).shards()]
    assert len(sizes) > 3
    assert all(40_000 <= size < 90_000 for size in sizes[:-1])


def test_all_or_nothing(small, tmp_path, monkeypatch):
    def interrupted(*_):
        yield small[0]
        raise KeyboardInterrupt

    monkeypatch.setattr("data.collections.gold.pages.generate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Gold(**SMALL, cache=tmp_path).shards()
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_processes_wins(small, cache, tmp_path, monkeypatch):
    target = tmp_path / Gold(**SMALL, cache=cache).folder().name

    def overtaken(*_):
        target.mkdir()
        (target / "of-the-first").touch()
        yield small[0]

    monkeypatch.setattr("data.collections.gold.pages.generate", overtaken)
    assert Gold(**SMALL, cache=tmp_path).folder() == target
    assert [path.name for path in target.iterdir()] == ["of-the-first"]
    assert list(tmp_path.iterdir()) == [target]


def test_gerunds():
    gerunds = {"tie": "tying", "make": "making", "see": "seeing", "plan_ahead": "planning ahead"}
    assert {verb: gerund(verb) for verb in gerunds} == gerunds


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_checksums(small):
    assert sha256(small) == SMALL_SHA256
    assert sha256(list(generate(1, 400, 40))) == "a81ff7943ecdf7127005f7f3e31f406cf2f74fb609e9caef5e195fba8cf9a518"


def test_checksum_in_another_process_with_another_hash_seed():
    code = (
        "import hashlib; from data.collections.gold.pages import generate; digest = hashlib.sha256()\n"
        f"for page in generate(**{SMALL}):\n"
        "    digest.update(f'{page.cluster}/{page.name}\\0'.encode() + page.content)\n"
        "print(digest.hexdigest())"
    )
    assert process(program=("-c", code), environment={"PYTHONHASHSEED": "77"}).stdout.strip() == SMALL_SHA256


@pytest.mark.long
def test_checksum_of_a_reported_seed():
    assert sha256(list(generate(5, 2160, 68))) == FULL_SHA256
