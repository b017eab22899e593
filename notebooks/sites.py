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
# # When do spot signatures help?
#
# Most pairs of pages that are wrongly taken for near-duplicates are two pages of one site, because a site repeats its
# template on every page. Spot signatures find little in a template, so they should help most where few sites supply the
# pages. This notebook shows the mechanism on pages that it makes itself. It needs no download. The test on
# templates of hundreds of real sites is the second part of [docs/protocol.md](../docs/protocol.md), and `python run.py
# experiment=sites` runs it.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from labelled import ROOT

import spotsigs
from baselines.shingles import Shingles

plt.style.use(ROOT / "experiments" / "show" / "paper.mplstyle")

# %% [markdown]
# ## A model of pages
#
# A *story* has eight paragraphs of 30 words, of a vocabulary of 3,000 where a few words are frequent. One word in six
# is *the*, an antecedent. Each page of a story replaces up to five of its paragraphs by others, as editors do. A *site*
# has a template of 400 words. The fraction of them that are *the* is its *density*, which is low, because a template
# consists of menus and lists of links. A page is the template of its site with the story in its middle.

# %%
VOCABULARY = np.array([f"w{number}" for number in range(3000)], object)
FREQUENCY = 1 / np.arange(20, 3020)
FREQUENCY /= FREQUENCY.sum()
PAGES, STORIES, PARAGRAPHS, OF_PARAGRAPH, OF_TEMPLATE = 300, 30, 8, 30, 400


def text(rng, length, density):
    """Return random words, of which a fraction is an antecedent."""
    words = rng.choice(VOCABULARY, length, p=FREQUENCY)
    words[rng.random(length) < density] = "the"
    return words


def pages_of(number, density, seed):
    """Return the text, the story and the site of each page of a number of sites."""
    rng = np.random.default_rng(seed)
    stories = [[text(rng, OF_PARAGRAPH, 1 / 6) for _ in range(PARAGRAPHS)] for _ in range(STORIES)]
    templates = [text(rng, OF_TEMPLATE, density) for _ in range(number)]
    of_story = np.arange(PAGES) % STORIES
    of_site = rng.permutation(np.arange(PAGES) % number)
    texts = []
    for story, site in zip(of_story, of_site, strict=True):
        edited = list(stories[story])
        for paragraph in rng.choice(PARAGRAPHS, rng.integers(0, 6), replace=False):
            edited[paragraph] = text(rng, OF_PARAGRAPH, 1 / 6)
        before, after = np.split(templates[site], 2)
        texts.append(" ".join([*before, *np.concatenate(edited), *after]))
    return texts, of_story, of_site


# %% [markdown]
# ## False pairs by site
#
# A *false pair* is reported although its two pages have different stories. The function below joins all pages exactly,
# at the threshold with the highest F1 of each signature, and counts the false pairs there.

# %%
SIGNATURES = {"spots": spotsigs.SpotSignatures(), "words": Shingles(k=1), "3-shingles": Shingles(k=3)}
TAUS = np.arange(0.02, 1.01, 0.02).round(2)
WHOLE = {"boilerplate": "keep", "duplicates": "off", "idf_min": 0.2, "idf_max": 1.0, "tau": TAUS[0]}


def best(texts, stories, sites, scheme):
    """Return the best F1 of a signature, its threshold, the false pairs there, and the fraction of one site."""
    pairs = spotsigs.near_duplicates(texts, method=spotsigs.Method.of(signature=scheme, **WHOLE))
    true, of_one_site = stories[pairs.i] == stories[pairs.j], sites[pairs.i] == sites[pairs.j]
    sizes = np.bincount(stories)
    reported, hits, same_site = (
        np.array([np.count_nonzero(pairs.similarity[of] >= tau) for tau in TAUS])
        for of in (slice(None), true, ~true & of_one_site)
    )
    f1 = 2 * hits / (reported + (sizes * (sizes - 1) // 2).sum())
    at = int(np.argmax(f1))
    false = int(reported[at] - hits[at])
    share = same_site[at] / false if false else np.nan
    return {"threshold": TAUS[at], "F1": f1[at], "false pairs": false, "of one site": share}


made = pages_of(6, 0.04, seed=0)
pd.DataFrame({name: best(*made, scheme) for name, scheme in SIGNATURES.items()}).T.round(3)

# %% [markdown]
# ## The lead over the number of sites
#
# The *lead* is the F1 of spots less the F1 of the better of words and 3-shingles. All collections have 300 pages of the
# same number of stories; only the number of sites differs, and, in a second line, the density of antecedents in the
# templates. Each point is the mean of six draws, and the band is their range.

# %%
NUMBERS, DENSITIES, DRAWS = (6, 12, 25, 50, 100), (0.01, 0.04), 6


def lead(number, density, seed):
    """Return the lead of spots in one draw."""
    made = pages_of(number, density, seed)
    f1 = {name: best(*made, scheme)["F1"] for name, scheme in SIGNATURES.items()}
    return f1["spots"] - max(f1["words"], f1["3-shingles"])


rows = []
for density in DENSITIES:
    for number in NUMBERS:
        leads = [lead(number, density, seed) for seed in range(DRAWS)]
        rows.append(
            {"density": density, "sites": number, "mean lead": np.mean(leads), "low": min(leads), "high": max(leads)}
        )
table = pd.DataFrame(rows)
table.round(3)

# %%
figure, axis = plt.subplots(figsize=(4.6, 3), layout="constrained")
for density, of in table.groupby("density"):
    axis.plot(of["sites"], of["mean lead"], label=f"density {density:g}")
    axis.fill_between(of["sites"], of["low"], of["high"], alpha=0.15, linewidth=0)
axis.axhline(0, color="0.35", linewidth=0.9, linestyle="--")
axis.set(xscale="log", xlabel="number of sites", ylabel="lead of spot signatures, F1")
axis.set_xticks(NUMBERS, NUMBERS)
axis.minorticks_off()
axis.legend()
plt.show()

# %% [markdown]
# In this model both factors count: the lead falls with the number of sites, and it is smaller where templates have more
# antecedents. Whether this holds on real pages is what the study measures; its results are in `results/sites/`,
# `results/sites_density/` and `results/sites_templates/`.
