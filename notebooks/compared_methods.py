# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # SpotSigs, LSH and I-Match
#
# A method is a *signature* (spots or shingles of a page) and a *matcher* of the signatures. SpotSigs finds every pair
# that reaches a threshold. LSH puts pages that agree on $k$ min-hashes into one bucket of $l$ tables, and finds a
# pair of similarity $s$ with probability $1 - (1 - s^k)^l$. I-Match hashes all terms of medium IDF of a page to one
# value, so that one different term separates two pages. This notebook runs all on pages whose duplicates are known:
# `newsframes`, real stories in templates of real sites, if it has been downloaded once (`python run.py
# data=newsframes data.seed=5 data.accept_licence=true`), `republished`, documentation that was published again, and
# `gold`, which is generated. The last section runs them on your own file.

# %%
from collections import Counter
from heapq import nsmallest

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from labelled import ROOT, Labelled, best, labelled, quality, true_pairs

import spotsigs
from baselines.imatch import IMatch
from baselines.lsh_native import LshNative
from baselines.shingles import Shingles
from spotsigs.formats.folder import Folder, SortedBy
from spotsigs.records import Corpus

plt.style.use(ROOT / "experiments" / "show" / "paper.mplstyle")

LOWEST = 0.06  # the lowest threshold
TAUS = np.arange(LOWEST, 1.0, 0.04).round(2)
words, shingles, spots = Shingles(k=1), Shingles(k=3), spotsigs.SpotSignatures()
exact, lsh = spotsigs.SpotSigsTight(tau=LOWEST), LshNative(tau=LOWEST, k=6, l=32)  # the paper's k and l
hashed, BAND = IMatch(idf_min=0.4, idf_max=0.75), {"idf_min": 0.4, "idf_max": 0.75}  # its best band in the paper
methods = {
    "SpotSigs": (spots, exact, {}),
    "exact, 3-shingles": (shingles, exact, {}),
    "LSH, spots": (spots, lsh, {}),
    "LSH, 3-shingles": (shingles, lsh, {}),
    "I-Match-S (spots)": (spots, hashed, BAND),
    "I-Match (words)": (words, hashed, BAND),
}


def run(collection):
    """Return the pairs of every method, and the truth."""
    found = {}
    for name, (scheme, matcher, band) in methods.items():
        vectors, truth = collection.vectors(scheme, **band)
        found[name] = matcher(Corpus(vectors))
    return found, truth


collections = labelled()
runs = {collection.name: run(collection) for collection in collections}

# %% [markdown]
# ## Signature and matcher separated
#
# The table has the best F1 of each signature with each matcher, in the IDF band [.2, 1], and its threshold. Where both
# rows of a signature are equal, LSH costs no quality. Where the row of LSH is lower, true pairs share too few
# signatures for $k = 6$. On `gold`, LSH on spots thus has an F1 of .208 here and .910 in Table 1, which has the paper's
# band, [.2, .85]. The upper bound drops the signatures that few pages have. This raises the median similarity of the
# true pairs from .32 to .68, and the probability that LSH finds a pair of this similarity from .04 to .97.

# %%
rows = []
for name, (found, truth) in runs.items():
    for method, pairs in found.items():
        own = methods[method][1] is not hashed
        row = best(pairs, truth) if own else {"tau": np.nan} | quality(pairs, truth)
        rows.append({"pages": name, "method": method} | row)
table = pd.DataFrame(rows).set_index(["pages", "method"])
table.round(3)

# %% [markdown]
# ## F1, stories lost and duplicates left over the threshold
#
# A story is lost if no page of it is kept; a duplicate is left if it is kept beside another page of its story. A
# method without a threshold is a level line.

# %%
figures = {"F1": "f1", "stories lost": "lost", "duplicates left": "left"}
curves = {}
for name, (found, truth) in runs.items():
    for method, pairs in found.items():
        at = [pairs] if methods[method][1] is hashed else [pairs.at(tau) for tau in TAUS]
        values = [spotsigs.evaluate(each, truth, resamples=0) for each in at]
        curves[name, method] = {key: np.nan_to_num([getattr(one, key) for one in values]) for key in figures.values()}

figure, axes = plt.subplots(
    len(figures), len(runs), figsize=(3.6 * len(runs), 7), squeeze=False, sharex=True, layout="constrained"
)
for column, name in enumerate(runs):
    for row, (title, key) in enumerate(figures.items()):
        axis = axes[row, column]
        for method in methods:
            values = curves[name, method][key]
            axis.plot(TAUS, values if len(values) > 1 else np.repeat(values, len(TAUS)), label=method, marker="")
        axis.set(ylim=(-0.02, 1.02), ylabel=title if column == 0 else "", title=name if row == 0 else "")
    axes[-1, column].set_xlabel("threshold")
handles = axes[0, 0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=3)
figure.suptitle("F1, stories lost and duplicates left over the threshold")
plt.show()

# %% [markdown]
# ## The plane of k and l
#
# F1 of LSH on spots at a threshold of 0.2 for each number $k$ of min-hashes in a key and $l$ of tables, and its
# seconds, which depend on the machine and are drawn only. The exact join has the F1 in the title.

# %%
K, L, TAU = (1, 2, 3, 4, 6), (4, 16, 64, 256), 0.2
figure, axes = plt.subplots(2, len(runs), figsize=(3.6 * len(runs), 5.6), squeeze=False, layout="constrained")
plane = []
for column, collection in enumerate(collections):
    vectors, truth = collection.vectors(spots)
    f1, seconds = np.zeros((len(K), len(L))), np.zeros((len(K), len(L)))
    for a, k in enumerate(K):
        for b, tables in enumerate(L):
            pairs = LshNative(tau=TAU, k=k, l=tables)(Corpus(vectors))
            f1[a, b] = np.nan_to_num(spotsigs.evaluate(pairs, truth, resamples=0).f1)
            seconds[a, b] = sum(pairs.seconds[stage] for stage in ("sort_hash", "cluster"))
            plane.append({"pages": collection.name, "k": k, "l": tables, "F1": f1[a, b]})
    whole = spotsigs.evaluate(runs[collection.name][0]["SpotSigs"].at(TAU), truth, resamples=0).f1
    for row, (values, form) in enumerate(((f1, "{:.2f}"), (1000 * seconds, "{:.0f}"))):
        axis = axes[row, column]
        shown = values if row == 0 else np.log(values)
        axis.imshow(shown, cmap="viridis" if row == 0 else "magma_r", aspect="auto", vmin=0 if row == 0 else None)
        for a, b in np.ndindex(values.shape):
            axis.text(b, a, form.format(values[a, b]), ha="center", va="center", fontsize=8,
                      bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1})  # fmt: skip
        axis.set_xticks(range(len(L)), L)
        axis.set_yticks(range(len(K)), K)
        axis.grid(visible=False)
        axis.set_ylabel(("F1: k" if row == 0 else "milliseconds: k") if column == 0 else "")
    axes[0, column].set_title(f"{collection.name}, exact join {whole:.2f}")
    axes[1, column].set_xlabel("l")
figure.suptitle(f"LSH on spots at a threshold of {TAU}: F1 above, milliseconds below")
plt.show()
pd.DataFrame(plane).pivot(index=["pages", "k"], columns="l", values="F1").round(3)

# %% [markdown]
# ## Pairs that each misses
#
# Each method at its best threshold: the true pairs of all, those that it misses, those that it alone finds, and the
# false pairs that it alone reports. Below, two pairs that each misses, with the beginnings of the longest lines of
# both pages; those that most of the other methods find come first.

# %%
rows, examples = [], []
for collection in collections:
    found, truth = runs[collection.name]
    true, sets = {*map(tuple, true_pairs(truth).tolist())}, {}
    for method, pairs in found.items():
        tau = table.loc[(collection.name, method), "tau"]
        at = pairs if np.isnan(tau) else pairs.at(tau)
        sets[method] = {*zip(at.i.tolist(), at.j.tolist(), strict=True)}
    count = Counter(pair for own in sets.values() for pair in own)
    lines = collection.longest_lines()
    for method, own in sets.items():
        alone, missed = {pair for pair in own if count[pair] == 1}, true - own
        about = {"pages": collection.name, "method": method}
        row = about | {"true pairs": len(true), "missed": len(missed)}
        rows.append(row | {"found alone": len(alone & true), "false alone": len(alone - true)})
        for a, b in nsmallest(2, missed, key=lambda pair: (-count[pair], pair)):
            pair = {"page": lines[a], "other page": lines[b]}
            examples.append(about | pair | {"found by others": count[a, b]})
pd.DataFrame(rows).set_index(["pages", "method"])

# %%
pd.set_option("display.max_colwidth", None)
pd.DataFrame(examples).set_index(["pages", "method"])

# %% [markdown]
# ## Transfer of thresholds
#
# The table has the F1 of SpotSigs on the pages of a column, at the threshold that is best on the pages of a row. The
# difference to the diagonal is what a threshold of other pages costs.

# %%
transfer = {
    name: {
        other: quality(runs[other][0]["SpotSigs"].at(table.loc[(name, "SpotSigs"), "tau"]), runs[other][1])["F1"]
        for other in runs
    }
    for name in runs
}
pd.DataFrame(transfer).T.rename_axis("threshold of").round(3)

# %% [markdown]
# ## Your own file
#
# Any collection with labels: a folder with a sub-folder for each story, as here, or `Jsonl(path="own.jsonl",
# cluster_column="cluster")` of `spotsigs.formats.jsonl`. `python run.py experiment=compare data=jsonl
# data.path=own.jsonl` compares all methods, with intervals, times and lists of pairs.

# %%
own = Labelled("your pages", Folder(path=str(ROOT / "data" / "tiny"), clusters=SortedBy.folders))
found, truth = run(own)
rows = {name: (best if methods[name][1] is not hashed else quality)(pairs, truth) for name, pairs in found.items()}
pd.DataFrame.from_dict(rows, orient="index").round(3)
