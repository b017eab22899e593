"""Pages that stay for their text: the reference implementation, the promise, and every way to run."""

import json

import numpy as np
import pytest
from folders import rows_of
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from naive import text_kept as naive
from runs import deduplicated
from strategies import examples, is_long
from test_decisions import graphs, weighted
from test_engines import available
from test_sections import WAYS

import spotsigs
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.clustering.decisions import decide
from spotsigs.clustering.text_kept import keep_for_text
from spotsigs.errors import InputError
from spotsigs.exact_duplicates import ExactDuplicates
from spotsigs.records import WordGrams
from spotsigs.signatures.extract import GRAM_BITS, grams_of

LAST = 1 << (64 - GRAM_BITS)
SAMPLED = [0, 2, LAST - 2, *(LAST * k // 16 & ~1 for k in range(1, 12))]
OTHER = [1, LAST - 1, LAST, 2**64 - 2]  # of sentences, and of grams outside the sample
SHARES = [0.1, 0.3, 0.6, 0.9]


def batches_of(rows, cuts):
    """Return the grams of the rows in batches that end at the cuts."""
    for part in np.split(np.arange(len(rows)), sorted(cuts)):
        of_part = [np.sort(np.array(sorted(rows[row]), np.uint64)) for row in part]
        hashes = np.concatenate([np.empty(0, np.uint64), *of_part])
        yield WordGrams(np.cumsum([0, *map(len, of_part)]), hashes)


@st.composite
def texts(draw, n):
    """Draw grams of n pages, many in several of them, sets of exact duplicates, and cuts between batches."""
    grams = st.one_of(
        st.sampled_from(SAMPLED), st.sampled_from(OTHER), st.integers(0, LAST // 2 - 1).map(lambda g: 2 * g)
    )
    base = draw(st.lists(st.sets(grams, max_size=14), min_size=1, max_size=4))
    rows = [draw(st.sampled_from(base)) | draw(st.sets(grams, max_size=6)) for _ in range(n)]
    of = np.arange(n, dtype=np.int32)
    for row in draw(st.lists(st.integers(0, n - 1), max_size=3)):
        of[of == of[row]] = of[draw(st.integers(0, n - 1))]
    for label in set(of.tolist()):
        of[of == label] = np.flatnonzero(of == label).max()
    return rows, of, draw(st.lists(st.integers(0, n), max_size=3))


@examples(200, long=5000)
@given(
    st.data(), graphs(), st.sampled_from(ClusterMethod), st.sampled_from(SHARES),
    st.sampled_from([1, 48, 150, 500, 10**6]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_pages_stay_for_their_text_as_in_the_reference_and_the_promise_holds(
    data, graph, method, share, most_bytes, ordered, add
):
    n, near, lengths, _, earlier = graph
    earlier = np.array(earlier if add else [], np.bool_)
    old = len(earlier)
    rows, of, cuts = data.draw(texts(n))
    near = {pair: value for pair, value in near.items() if pair[1] >= old}
    pairs = weighted(near, n)
    rank = np.array(lengths) if ordered else np.arange(n)
    rank[:old] = rank.min() - 1
    groups = cluster(pairs, clusters=method, priority=rank, removed=np.concatenate([~earlier, np.zeros(n - old, bool)]))
    before = decide(pairs, groups, earlier=earlier, exact_duplicates=ExactDuplicates(of, of))
    after = keep_for_text(
        before, lambda: batches_of(rows, cuts), share, priority=rank if ordered or old else None, old=old,
        most_bytes=most_bytes,
    )  # fmt: skip
    sampled = [{gram for gram in row if gram < LAST and gram % 2 == 0} for row in rows]
    order = sorted(range(n), key=lambda row: (rank[row], row))
    stay = naive.text_kept(sampled, before.kept.tolist(), of.tolist(), order, share, old)
    assert set(np.flatnonzero(after.for_text).tolist()) == stay
    np.testing.assert_array_equal(after.kept, before.kept | after.for_text)
    # the promise: every removed page keeps its near-duplicate, and few of its grams are lost
    gone = np.flatnonzero(~after.kept[old:]) + old
    np.testing.assert_array_equal(after.instead(gone), before.instead(gone))
    np.testing.assert_array_equal(after.partner, before.partner)
    assert after.kept[after.instead(gone)[after.instead(gone) >= 0]].all()
    stays = {of[row] for row in np.flatnonzero(after.kept).tolist()}
    for row in gone.tolist():
        if of[row] not in stays:
            assert naive.lost(sampled, of[row], set(of.tolist()), stays) <= naive.limit(len(sampled[of[row]]), share)
    if method is ClusterMethod.leaders:
        for i, j in near:
            assert not (after.kept[i] and after.kept[j]) or after.for_text[i] or after.for_text[j]
    sizes = after.clusters.sizes[after.clusters.labels]
    assert (sizes[after.for_text] == 1).all()
    others = ~after.for_text
    leaders = [decided.clusters.representatives[decided.clusters.labels][others] for decided in (before, after)]
    np.testing.assert_array_equal(*leaders)


TAU = 0.44


def stories(rng):
    """Return short stories, and versions of each with another end, or with a list of its own several times as long."""
    words = np.array([f"w{k}" for k in range(4000)])
    rows = []
    for k in range(16):
        text = " ".join("the " + " ".join(rng.choice(words, 3)) for _ in range(80))
        table = " ".join(rng.choice(words, rng.integers(300, 1000)))
        versions = {"a": text, "c": f"{text[:-20]} x y", "t": f"{text}. {table}", "u": f"{text}. {table} end of it"}
        rows += [{"id": f"{name}{k}", "text": version} for name, version in versions.items()]
        rows += [rows[-2] | {"id": f"v{k}"}] * (k % 3 == 0)
    return [rows[k] for k in rng.permutation(len(rows))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rows = stories(np.random.default_rng(3))
    for name, part in {"all": rows, "old": rows[:30], "new": rows[30:]}.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)) + "\n")
    return folder, rows


def ran(folder, out, read, *words):
    return deduplicated(folder, out, read, "--tau", TAU, *words)


def expected(rows, kept, order=None, *, old=0, share=0.6):
    """Return the ids that stay if those are kept by similarity."""
    sampled = [
        {h for h in batch.hashes.tolist() if h < LAST and h % 2 == 0} for batch in grams_of(r["text"] for r in rows)
    ]
    last = {row["text"]: k for k, row in enumerate(rows)}
    of, known = [last[row["text"]] for row in rows], [row["id"] in kept for row in rows]
    order = range(len(rows)) if order is None else order
    return {rows[k]["id"] for k in naive.text_kept(sampled, known, of, order, share, old)}


@pytest.mark.parametrize("clusters", ["leaders", "components"])
def test_memory_budgets_stores_and_engines_give_the_same_bytes(inputs, clusters):
    folder, rows = inputs
    words = ("--clusters", clusters)
    one = ("--workers", 1, "--engine", "serial", *words)
    plain, _, _ = ran(folder, "plain", "all", *one, "--most-text-lost", 1)
    kept, tables, printed = ran(folder, "kept", "all", *one)
    stay = expected(rows, set(plain))
    assert 3 < len(stay) < 16
    assert set(kept) == set(plain) | stay
    assert {row["doc"] for row in rows_of(folder / "kept-results/kept.csv") if row["near_duplicate"]} == stay
    assert f"{len(stay)} near-duplicates kept: more than 60 % of the text is rare" in printed
    assert json.loads((folder / "kept-results/metrics.json").read_text())["kept_for_text"] == len(stay)
    assert not any(row["near_duplicate"] for row in rows_of(folder / "plain-results/kept.csv"))
    assert {row["id"] for row in spotsigs.dedup(rows, TAU, clusters=clusters)} == set(kept)
    for way in ("processes", "budget", "store", *(["budget, dask"] if is_long() and available("distributed") else [])):
        assert ran(folder, "other", "all", *words, *WAYS[way])[1] == tables, way


def test_the_longest_page_stays_first(inputs):
    folder, rows = inputs
    words = ("--workers", 1, "--keep", "longest")
    plain, _, _ = ran(folder, "plain", "all", *words, "--most-text-lost", 1)
    kept, _, _ = ran(folder, "kept", "all", *words)
    assert set(kept) >= set(plain)
    assert [row["id"] for row in spotsigs.dedup(rows, TAU, keep="longest")] == kept


def test_text_of_earlier_documents_of_a_store_is_known(inputs, tmp_path):
    folder, rows = inputs
    old, _, _ = ran(folder, "old", "old", "--store", tmp_path / "store", "--workers", 1)
    ran(folder, "plain-old", "old", "--store", tmp_path / "plain", "--workers", 1)
    words = ("--add", "--workers", 1)
    plain, _, _ = ran(folder, "plain", "new", "--store", tmp_path / "plain", *words, "--most-text-lost", 1)
    kept, _, _ = ran(folder, "kept", "new", "--store", tmp_path / "store", *words)
    stay = expected(rows, set(plain) | set(old), old=30)
    assert stay
    assert set(kept) == set(plain) | stay


def test_a_page_of_a_reference_removes_others_whatever_their_text(inputs):
    folder, rows = inputs
    kept, _, printed = ran(folder, "kept", "new", "--against", "old.jsonl", "--workers", 1)
    assert "text is rare" not in printed
    assert spotsigs.dedup(rows[30:], TAU, against=rows[:30]) == [row for row in rows if row["id"] in set(kept)]
    done = command("pairs", "new.jsonl", "--against", "old.jsonl", "--most-text-lost", 0.6, cwd=folder)
    why = "a page that reaches tau with one of the reference is removed, whatever its text; leave out"
    assert f"{why} --most-text-lost" in done.stderr
    with pytest.raises(InputError, match=f"{why} most_text_lost"):
        spotsigs.dedup(rows, against=rows, most_text_lost=0.6)


def test_a_store_without_grams_is_named(inputs, tmp_path):
    folder, _ = inputs
    words = ("--store", tmp_path / "store", "--workers", 1)
    command("pairs", "old.jsonl", *words, "--most-text-lost", 1, cwd=folder)
    done = command("dedup", "new.jsonl", *words, "--add", "--most-text-lost", 0.6, "--out", tmp_path / "k", cwd=folder)
    assert done.returncode == 1
    assert "--most-text-lost 0.6 needs the word 5-grams of the documents, which " in done.stderr
    assert "has not; give --most-text-lost 1, or make the store again" in done.stderr


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan"), "much"])
def test_a_share_is_a_number_up_to_one(share):
    with pytest.raises(InputError, match=r"^most_text_lost must be a number in \(0, 1\], got "):
        spotsigs.dedup(["a page"], most_text_lost=share)
