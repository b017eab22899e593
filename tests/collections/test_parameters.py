"""Parameters of collections that cannot be."""

import pytest

from data.collections.gold import Gold
from data.collections.newsframes import NewsFrames
from data.collections.republished import Republished
from data.collections.wt10g_like import Wt10gLike
from spotsigs.errors import InputError

WRONG = [
    (Gold, {"pages": 100}, "pages must be at least 136"),
    (Gold, {"clusters": 0}, "clusters must"),
    (Gold, {"seed": -1}, "seed must"),
    (NewsFrames, {"drift": 2}, "drift, a share of blocks, must be in"),
    (NewsFrames, {"prose": -1}, "prose, spots per token, must be in"),
    (NewsFrames, {"seed": -1}, "seed must not be negative"),
    (Republished, {"releases": "books"}, "releases must be one of republished, manuals, republished2, got 'books'"),
    (Republished, {"sites": ["alembic", "nowhere"]}, "nowhere is no site of republished, see republished.csv"),
    (Republished, {"paths": 0}, "paths must be positive"),
    (Wt10gLike, {"documents": 3}, "documents must be in"),
    (Wt10gLike, {"seed": -1}, "seed must not be negative"),
    (Wt10gLike, {"mean_length": 4.0}, "mean_length must be in"),
    *((Wt10gLike, {"idf_min": low, "idf_max": high}, "IDF band") for low, high in ((0.4, 1.5), (0.9, 0.5))),
]


@pytest.mark.parametrize(("collection", "wrong", "message"), WRONG)
def test_wrong_parameters(collection, wrong, message):
    with pytest.raises(InputError, match=message):
        collection(**wrong)
