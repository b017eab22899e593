"""Documents that are kept and removed: the promise of leaders, policies, reasons, and the tables that list them."""

import csv
from dataclasses import replace

import naive
import numpy as np
import pytest
from folders import rows_of
from hypothesis import given
from hypothesis import strategies as st
from stores import on_disk
from strategies import edges, examples, pairs_of

from spotsigs.clustering.clusters import ClusterMethod, cluster, cohesion
from spotsigs.clustering.decisions import BY_SCORE, Keep, decide, priority
from spotsigs.clustering.tables import RowFacts, write_cluster_list, write_csv, write_lists
from spotsigs.errors import InputError
from spotsigs.signatures.languages import language_codes
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.store import Strings

# the promise of leaders


def weighted(near, n):
    """Return pairs of n documents from the similarity of each."""
    return pairs_of(((*edge, value) for edge, value in near.items()), n)


@st.composite
def graphs(draw):
    """Draw pairs of up to 14 documents, their priority, and the decisions of an earlier run on the first of them."""
    n = draw(st.integers(1, 14))
    values = draw(st.sampled_from([[0.5, 0.75, 1.0], [0.5, 0.75, 1.0, float("nan")], [float("nan")]]))
    near = draw(st.dictionaries(edges(n), st.sampled_from(values), max_size=3 * n)) if n > 1 else {}
    lengths = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    dates = draw(st.lists(st.sampled_from([None, "no", "2008-07-20", "2009-01-01"]), min_size=n, max_size=n))
    earlier = draw(st.lists(st.booleans(), max_size=n - 1))
    return n, near, lengths, [*dates[1:], "2007-01-01"], earlier


@examples(150, long=20_000)
@given(graphs(), st.sampled_from(Keep), st.sampled_from([None, 1, 3, 10**4]), st.booleans())
def test_by_similarity_a_page_is_removed_only_for_a_kept_page_and_no_two_kept_pages_are_a_pair(
    tmp_path_factory, graph, keep, size, add
):
    n, near, lengths, dates, earlier = graph
    earlier = np.array(earlier if add else [], np.bool_)
    old = len(earlier)
    near = {pair: value for pair, value in near.items() if pair[1] >= old}  # as a run with add reports them
    pairs = weighted(near, n)
    if size is not None:
        pairs = on_disk(tmp_path_factory.mktemp("pairs"), pairs, 3, np.random.default_rng(n), size)
    rank = priority(keep, n, np.array(lengths), map(str, lengths) if keep in BY_SCORE else dates)
    rank = np.arange(n) if rank is None else rank
    rank[:old] = rank.min() - 1
    removed = np.concatenate([~earlier, np.zeros(n - old, np.bool_)])
    groups = cluster(pairs, priority=rank, removed=removed)
    decisions = decide(pairs, groups, keep, earlier=earlier)
    kept, new = set(np.flatnonzero(decisions.kept).tolist()), range(old, n)
    assert [row in kept for row in range(old)] == earlier.tolist()
    if keep is Keep.none:
        assert kept & set(new) == set(new) - {row for pair in near for row in pair}
        assert (decisions.replacements(np.array(new)) == -1).all()
        return
    for row in set(new) - kept:  # first half: a kept page reaches tau, and it is the one that is named and quoted
        [instead] = decisions.replacements(np.array([row])).tolist()
        assert instead in kept
        assert instead == decisions.partner[row]
        quoted = near[min(row, instead), max(row, instead)]
        np.testing.assert_equal(decisions.similarity[row], quoted)
        np.testing.assert_equal(groups.similarity_to_representative[row], quoted)
    assert not [pair for pair in near if set(pair) <= kept]  # second half
    order = sorted(range(n), key=lambda row: (removed[row], rank[row], row))
    leaders = naive.leaders(near, order, np.flatnonzero(removed).tolist())
    assert groups.representatives[groups.labels].tolist() == [leaders[row] for row in range(n)]


@examples(30, long=2000)
@given(graphs(), st.sampled_from(ClusterMethod), st.sampled_from([1, 3]), st.booleans())
def test_clusters_and_decisions_on_disk_are_those_in_memory(tmp_path_factory, graph, method, size, ordered):
    n, near, lengths, _, _ = graph
    pairs = weighted(near, n)
    files = on_disk(tmp_path_factory.mktemp("pairs"), pairs, 3, np.random.default_rng(n), size)
    rank = -np.array(lengths) if ordered else None
    one, other = (cluster(some, clusters=method, priority=rank) for some in (pairs, files))
    for name in ("labels", "representatives", "similarity_to_representative"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for keep in Keep:
        left, right = decide(pairs, one, keep), decide(files, other, keep)
        for name in ("kept", "partner", "similarity"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


# policies and reasons


def drawn_pairs(n):
    values = st.sampled_from([0.5, 1 / 3, 0.1234567, 1.0, float("nan")])
    return st.dictionaries(edges(n), values, max_size=2 * n).map(lambda near: weighted(near, n))


EDGES = [(0, 1, 0.9), (1, 2, 0.5), (3, 4, 1.0)]  # 0 and 2 are connected through 1; 5 is alone
NAMES = ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("method", "keep", "kept", "instead"),
    [
        ("components", Keep.first, "adf", "-aa-d-"),
        ("components", Keep.longest, "cef", "cc-e--"),
        ("components", Keep.newest, "bdf", "b-b-d-"),
        ("components", Keep.none, "f", "------"),
        ("leaders", Keep.first, "acdf", "-a--d-"),
        ("leaders", Keep.longest, "acef", "-a-e--"),
        ("leaders", Keep.newest, "bdf", "b-b-d-"),
        ("leaders", Keep.none, "f", "------"),
    ],
)
def test_policies(method, keep, kept, instead):
    pairs = pairs_of(EDGES, 6)
    dates = ["2024-01-01", "2024-01-01T10:00:00+02:00", "not a date", None, None, "1999-12-31"]
    rank = priority(keep, 6, lengths=np.array([1, 2, 3, 4, 5, 6]), dates=dates)
    decisions = decide(pairs, cluster(pairs, clusters=method, priority=rank), keep)
    assert "".join(n for n, k in zip(NAMES, decisions.kept, strict=True) if k) == kept
    assert "".join(NAMES[r] if r >= 0 else "-" for r in decisions.replacements(np.arange(6))) == instead


@given(st.data())
def test_decisions_against_counting(data):
    n = data.draw(st.integers(2, 12))
    near = data.draw(st.dictionaries(edges(n), st.sampled_from([0.5, 0.75, 1.0]), max_size=20))
    pairs = weighted(near, n)
    for method in ClusterMethod:
        groups = cluster(pairs, clusters=method)
        decisions = decide(pairs, groups, Keep.first)
        for row in range(n):
            representative = groups.representatives[groups.labels[row]]
            partners = [(-v, b if a == row else a) for (a, b), v in near.items() if row in (a, b)]
            partners = [pair for pair in partners if pair[1] == representative] or partners
            similarity, partner = min(partners, default=(np.nan, -1))
            assert decisions.partner[row] == partner
            np.testing.assert_equal(decisions.similarity[row], -similarity)
        assert decisions.kept.sum() == len(groups.sizes)
        gone = ~decisions.kept
        assert np.all(groups.labels[decisions.replacements(np.flatnonzero(gone))] == groups.labels[gone])
        alone = set(range(n)) - {row for pair in near for row in pair}
        assert set(np.flatnonzero(decide(pairs, groups, Keep.none).kept).tolist()) == alone


def test_policies_refuse_missing_lengths_and_dates():
    with pytest.raises(InputError, match="keep=longest needs the documents' lengths"):
        priority(Keep.longest, 3)
    with pytest.raises(InputError, match="keep=newest needs dates"):
        priority(Keep.newest, 2, dates=["no", None])


CELLS = st.text(st.sampled_from(list("=+-@＝＋－＠ab,\"'\r\n\t \x1c\x85\u3000é")), max_size=6)


def naive_line(cells):
    """Return a line of CSV, cell by cell."""
    cells = [
        f"'{cell}" if cell.lstrip()[:1] in tuple("=+-@＝＋－＠") or cell[:1] in tuple("\t\r\n") else cell
        for cell in cells
    ]
    quoted = [f'"{cell.replace(chr(34), chr(34) * 2)}"' if set(cell) & set(',"\r\n') else cell for cell in cells]
    return ",".join(quoted if cells != [""] else ['""']) + "\n"


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=8)))
def test_tables_are_those_written_cell_by_cell(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    write_csv(path, ["name"] * len(rows[0]), rows)
    _, body = path.read_bytes().decode().split("\n", 1)
    assert body == "".join(map(naive_line, rows))
    with path.open(newline="", encoding="utf-8") as file:
        _, *read = csv.reader(file)
    actual, expected = ([[cell.removeprefix("'") for cell in row] for row in table] for table in (read, rows))
    assert actual == expected


def naive_reason(decisions, row, names):
    """Return the sentence why a document was removed."""

    partner, similarity = int(decisions.partner[row]), decisions.similarity[row]
    evidence = "" if np.isnan(similarity) else f" (similarity {similarity:.3f})"
    pair = f"near-duplicate of {names[partner]}{evidence}"
    of = decisions.exact_duplicates
    for word, sets in (("text", of.representatives), ("content", of.content)):
        if sets[row] == sets[partner]:
            evidence = f" (identical {word})"
            pair = f"identical {word}: copy of {names[partner]}"
    instead = int(decisions.replacements(np.array([row]))[0])
    if instead < 0:
        return f"{pair}; no document that has a near-duplicate is kept"
    if instead == partner:
        return f"{pair}, which is kept"
    return f"in one cluster with {names[instead]}, which is kept, through {names[partner]}{evidence}"


@given(
    st.integers(2, 12).flatmap(drawn_pairs),
    st.sampled_from([Keep.first, Keep.none]),
    st.sampled_from(ClusterMethod),
    st.booleans(),
    st.lists(CELLS, min_size=12, max_size=12),
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=12, max_size=12),
)
def test_lists_are_those_written_row_by_row(tmp_path_factory, pairs, keep, method, stored, cells, same):
    folder = tmp_path_factory.mktemp("lists")
    ids = cells[: pairs.n]
    names = ids
    if stored:
        offsets = np.cumsum([1, *(len(name.encode()) for name in ids)])
        names = Strings(np.frombuffer(("-" + "".join(ids)).encode(), np.uint8), offsets)
    clusters = cluster(pairs, clusters=method)
    content, text = np.arange(pairs.n, dtype=np.int32), np.arange(pairs.n, dtype=np.int32)
    for row, (of_content, of_text) in reversed(list(enumerate(same[: pairs.n - 1]))):  # sets of neighbours
        content[row] = content[row + 1] if of_content else row
        text[row] = text[row + 1] if of_content or of_text else row
    decisions = decide(pairs, clusters, keep, exact_duplicates=ExactDuplicates(content, text))
    decisions = replace(decisions, contained=np.where(np.arange(pairs.n) % 3 == 0, np.nan, 0.25))
    lost = np.where(decisions.kept, np.nan, np.arange(pairs.n) / 8)
    languages = language_codes("de" if row % 2 else None for row in range(pairs.n))
    write_lists(decisions, names, folder, RowFacts(new_from=1, languages=languages, text_lost=lost))
    instead = decisions.replacements(np.arange(pairs.n))
    removed = [
        [
            ids[row],
            ids[instead[row]] if instead[row] >= 0 else "",
            ids[decisions.partner[row]],
            *(2 * ["" if np.isnan(decisions.similarity[row]) else repr(float(decisions.similarity[row]))]),
            "" if row % 3 == 0 else "0.25",
            naive_reason(decisions, row, ids),
            repr(row / 8),
        ]
        for row in range(1, pairs.n)
        if not decisions.kept[row]
    ]
    header = ["doc", "kept_instead", "partner", "similarity", "lower_bound", "contained", "reason", "text_lost"]
    assert (folder / "removed.csv").read_bytes().decode() == "".join(map(naive_line, [header, *removed]))
    kept = [[ids[row], "yes", "de" if row % 2 else ""] for row in range(1, pairs.n) if decisions.kept[row]]
    header = ["doc", "compared", "language"]
    assert (folder / "kept.csv").read_bytes().decode() == "".join(map(naive_line, [header, *kept]))

    cohesions = cohesion(clusters, pairs)
    write_cluster_list(folder / "clusters.csv", names, clusters, cohesions)
    rows = rows_of(folder / "clusters.csv")
    assert [int(row["size"]) for row in rows] == sorted(clusters.sizes[clusters.sizes > 1].tolist(), reverse=True)
    for row in rows:
        label = int(row["cluster"])
        representative = ids[clusters.representatives[label]]
        assert row["representative"] in (representative, f"'{representative}")
        of_label = cohesions.of(np.array([label]))
        assert (int(row["pairs"]), int(row["apart"])) == (of_label.pairs[0], of_label.apart[0])
        for name, value in (("min_similarity", of_label.minimum[0]), ("mean_similarity", of_label.mean[0])):
            assert row[name] == ("" if np.isnan(value) else repr(float(value)))
        assert row["chain"] == str(bool(of_label.chain[0])).lower()


def test_a_name_that_is_not_utf8_is_an_error(tmp_path):
    names = Strings(np.frombuffer(b"a\xff", np.uint8), np.array([0, 1, 2]))
    with pytest.raises(InputError, match="a name in the store is not UTF-8"):
        names.arrow(np.array([0, 1]))
    assert names.arrow(np.array([0, 0])).to_pylist() == ["a", "a"]
    assert len(names.arrow(np.empty(0, np.int64))) == 0


SCORES = st.floats(allow_nan=False).map(repr) | st.sampled_from(["", "-0.0", "0", "1e3", "1000", "nan", "a lot", None])


@given(st.lists(SCORES, min_size=1, max_size=20), st.sampled_from([Keep.largest, Keep.smallest]))
def test_scores_order_as_numbers_do(scores, keep):
    def number(text):
        try:
            return float(text or "nan")
        except ValueError:
            return float("nan")

    values = list(map(number, scores))
    if all(map(np.isnan, values)):
        with pytest.raises(InputError, match=f"keep={keep.value} needs scores, and no document has one"):
            priority(keep, len(values), dates=scores)
        return
    sign = 1 if keep is Keep.smallest else -1
    known = [row for row in range(len(values)) if not np.isnan(values[row])]
    wanted = sorted(known, key=lambda row: sign * values[row])
    rank = priority(keep, len(values), dates=scores)
    assert np.argsort(rank, kind="stable").tolist() == wanted + [row for row in range(len(values)) if row not in known]


def test_dates_are_compared_by_microseconds():
    dates = ["2024-01-01T00:00:00.25Z", "2024-01-01T00:00:00.750001Z", "2024-01-01T00:00:00.75Z", None]
    rank = priority(Keep.newest, 4, dates=dates)
    assert np.argsort(rank, kind="stable").tolist() == [1, 2, 0, 3]
