# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # SpotSigs against I-Match
#
# I-Match hashes the terms of middling IDF of a page to one SHA-1 value: very fast, and very brittle, because a single
# changed term changes the value. Spot signatures make it less so (I-Match-S), several lexica less again.

# %%
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import display

import spotsigs
from spotsigs.baselines.imatch import IMatch, agreement_probability, lexica_gain

root = next(path for path in [Path.cwd(), *Path.cwd().parents] if (path / "run.py").exists())
results = root / "results"

# %% [markdown]
# ## One changed word
#
# Three versions of a story: the second has one word changed, the third one word more. I-Match over spot signatures
# loses what SpotSigs finds.

# %%
story = (
    "The council has approved the plan for a new bridge that will be built by the spring. The mayor was pleased with "
    "the result, and the engineers have begun the survey of the river. A vote on the budget is due in the autumn."
)
pages = [story, story.replace("pleased", "delighted"), story + " The sum was not given."]
pages += [f"The alpha{n} is a beta{n} and the gamma{n} was a delta{n}." for n in range(20)]
scheme = spotsigs.SpotSignatures()
rows = [scheme(spotsigs.tokenize(page)) for page in pages]
vocabulary = np.unique(np.concatenate(rows))
indptr = np.cumsum([0, *map(len, rows)])
ids = np.searchsorted(vocabulary, np.concatenate(rows))
corpus = spotsigs.Corpus(spotsigs.Vectors.from_csr(indptr, ids, vocabulary=vocabulary))

# %%
everything = {"idf_min": 0.0, "idf_max": 1.0}
print("SpotSigs:", len(spotsigs.SpotSigs(tau=0.44)(corpus)), "pairs")
print("I-Match-S:", len(IMatch(**everything)(corpus)), "pairs")
assert len(spotsigs.SpotSigs(tau=0.44)(corpus)) == 3
assert len(IMatch(**everything)(corpus)) < 3

# %% [markdown]
# ## Several lexica
#
# A further lexicon keeps a random share of the terms; it hides a difference if it keeps none of the changed terms. The
# probability that two pages agree under at least one:

# %%
pd.DataFrame(
    {
        f"{changed} changed terms": [agreement_probability(changed, lexica, 0.67) for lexica in (1, 2, 5, 10, 20)]
        for changed in (1, 2, 4, 8)
    },
    index=pd.Index([1, 2, 5, 10, 20], name="lexica"),
).round(3)

# %%
gain = lexica_gain(IMatch(lexica=20, **everything), corpus.vectors, spotsigs.SpotSigs(tau=0.44)(corpus))
pd.DataFrame(gain).set_index("lexica").loc[[1, 2, 5, 10, 20]]

# %% [markdown]
# ## On the gold collection
#
# From the last reproduction (`python run.py experiment=table1` and `experiment=imatch`):

# %%
table = results / "table1" / "table1.csv"
shown = "not there yet: python run.py experiment=table1"
if table.exists():
    rows = pd.read_csv(table).query("method in ['SpotSigs', 'I-Match', 'I-Match-S']")
    shown = rows[["method", "row", "idf", "tau", "precision", "recall", "f1"]]
display(shown)

# %%
lexica = results / "imatch" / "lexica.csv"
shown = "not there yet: python run.py experiment=imatch"
if lexica.exists():
    shown = pd.read_csv(lexica).pivot(index="x", columns=["panel", "series"], values="y").round(3)
display(shown)
