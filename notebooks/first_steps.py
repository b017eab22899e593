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
# # First steps
#
# Spot signatures, near-duplicate pairs and clusters of a few pages; then the figures of the last reproduction.
# `make notebooks` opens the notebooks.

# %%
from pathlib import Path

import pandas as pd
from IPython.display import display

import spotsigs

root = next(path for path in [Path.cwd(), *Path.cwd().parents] if (path / "run.py").exists())
results = root / "results"

# %% [markdown]
# ## Signatures
#
# A spot signature is an antecedent (a stopword) and the chain of content words that follows it at a spot distance. The
# paper's example, with a distance of 1 and chains of 2:

# %%
scheme = spotsigs.SpotSignatures(d=1, c=2, antecedents=["a", "an", "the", "is"])
scheme.readable(
    "At a rally to kick off a weeklong campaign for the South Carolina primary, Obama tried to set the record"
)

# %% [markdown]
# Navigation has hardly any stopwords, hence hardly any signatures:

# %%
scheme.readable("Home | World | Politics | Business | Sport | Subscribe | Log in")

# %% [markdown]
# ## Pairs and clusters

# %%
paths = sorted((root / "data" / "tiny").glob("*/*.html"))
pages = [path.read_bytes() for path in paths]
pairs = spotsigs.near_duplicates(pages, tau=0.44)
names = [path.relative_to(root / "data" / "tiny").as_posix() for path in paths]
pairs.to_pandas(names).head()

# %%
clusters = spotsigs.cluster(pairs, n=len(pages))
pd.Series(names).groupby(list(clusters)).apply(list).loc[lambda members: members.str.len() > 1]

# %% [markdown]
# Each folder is a true cluster, so the result can be judged:

# %%
truth = spotsigs.Truth.from_clusters([path.parent.name for path in paths])
quality = spotsigs.evaluate(pairs, truth)
print(f"precision {quality.precision:.3f}, recall {quality.recall:.3f}, F1 {quality.f1:.3f}")
assert quality.precision > 0.8

# %% [markdown]
# ## The last reproduction
#
# `python run.py experiment=all` writes everything below `results/`. Table 1, the published rows beside the measured:

# %%
table = results / "table1" / "table1.csv"
columns = ["method", "row", "tau", "spots", "precision", "recall", "f1", "total_ms"]
shown = pd.read_csv(table)[columns] if table.exists() else "not there yet: python run.py experiment=table1"
display(shown)

# %%
claims = results / "claims.csv"
counts = (
    pd.read_csv(claims)["verdict"].value_counts()
    if claims.exists()
    else "not there yet: python run.py experiment=claims"
)
display(counts)
