"""Methods print as they are typed: what is printed composes to the same method."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import configured
from strategies import examples

from experiments.choices import ChoiceNames
from experiments.config import override
from spotsigs.doors.cli import method_of, parser

CONF = Path(__file__).parents[2] / "conf"
GROUPS = [
    [f"{path.parent.name}={path.stem}" for path in sorted((CONF / group).glob("*.yaml"))]
    for group in ("text", "signature", "matcher")
]
CHOICES = [[group[k % len(group)] for group in GROUPS] for k in range(max(map(len, GROUPS)))]
"""Choices of a text, a signature and a matcher, each at least once."""
TAUS = st.floats(0.001, 1, allow_nan=False)
VALUES = {
    "text": st.sampled_from(["visible", "main"]),
    "sets": st.booleans(),
    "seed": st.integers(0, 9999),
    "idf_min": st.sampled_from([0, 0.2, 0.3]),
    "idf_max": st.sampled_from([0.85, 1, "auto"]),
    "idf": st.sampled_from(["paper", "prototype"]),
    "min_spots": st.integers(1, 9),
    "boilerplate": st.sampled_from(["keep", "remove", "main_content", "auto"]),
    "duplicates": st.sampled_from(["off", "content", "text"]),
    "clusters": st.sampled_from(["leaders", "components"]),
    "keep": st.sampled_from(["first", "longest", "newest", "none"]),
}
SIGNATURES = {
    "spotsigs": {
        "antecedents": st.lists(st.sampled_from(["a", "is", "that(5,2)", "@smart", "on", "c't", "null"]), min_size=1),
        "d": st.integers(1, 9),
        "c": st.integers(1, 9),
        "stopwords": st.sampled_from(["smart", "prototype", None]),
        "include_antecedent": st.booleans(),
        "language": st.sampled_from(["en", "de", "auto"]),
    },
    "shingles": {"k": st.integers(1, 9), "mod_p": st.sampled_from([None, 25])},
}
MATCHERS = {
    "spotsigs": {
        "rho": st.integers(1, 2000),
        "convention": st.sampled_from(["paper", "prototype"]),
        "partitioning": st.booleans(),
        "local_order": st.booleans(),
    },
    "lsh_native": {"k": st.integers(1, 9), "l": st.integers(1, 64)},
    "imatch": {"idf_max": st.sampled_from([0.75, 0.9]), "lexica": st.integers(1, 5)},
    "sketch": {"kind": st.sampled_from(["permutations", "modulo"])},
    "containment": {},
}


def printed(settings):
    return shlex.split(settings.method.spelled(ChoiceNames(settings.names)))


@pytest.mark.parametrize("choices", CHOICES, ids=" ".join)
def test_every_choice(choices):
    chosen = configured(*choices, "tau=0.7")
    words = printed(chosen)
    assert {*choices} <= {*words}
    assert configured(*words).method == chosen.method
    unnamed = shlex.split(chosen.method.spelled(ChoiceNames()))
    assert len(unnamed) == len(words)  # another choice of equal parameters at most
    assert configured(*unnamed).method == chosen.method


@st.composite
def choices(draw):
    """Draw some keys of a method, and parameters of its signature and matcher."""
    signature, matcher = draw(st.sampled_from([*SIGNATURES])), draw(st.sampled_from([*MATCHERS]))
    drawn = draw(st.fixed_dictionaries({"tau": TAUS}, optional=VALUES))
    for group, name, parameters in (
        ("signature", signature, SIGNATURES[signature]),
        ("matcher", matcher, MATCHERS[matcher]),
    ):
        chosen = draw(st.fixed_dictionaries({}, optional=parameters))
        drawn |= {group: name} | {f"{group}.{key}": value for key, value in chosen.items()}
    return drawn


@given(choices())
@examples(8, long=200)
def test_what_is_printed_composes_to_the_same_method(drawn):
    chosen = configured(*(override(key, value) for key, value in drawn.items()))
    assert configured("data=tiny", *printed(chosen)).method == chosen.method
    assert configured("data=tiny", *shlex.split(chosen.method.spelled(ChoiceNames()))).method == chosen.method


@given(
    st.fixed_dictionaries(
        {"--tau": st.sampled_from(["0.3", "1"])},
        optional={
            "--boilerplate": st.sampled_from(["auto", "remove", "keep", "main_content"]),
            "--language": st.sampled_from(["en", "auto", "fr"]),
            "--idf-min": st.sampled_from(["0", "0.1"]),
            "--idf-max": st.sampled_from(["0.9", "1"]),
            "--clusters": st.sampled_from(["leaders", "components"]),
            "--keep": st.sampled_from(["first", "longest", "newest", "none"]),
            "--measure": st.sampled_from(["jaccard", "containment"]),
        },
    )
)
@examples(40)
def test_a_method_of_the_command_prints_the_keys_of_run_py(options):
    words = [word for option in options.items() for word in option]
    made = method_of(parser().parse_args(["pairs", "data/tiny", *words]), None, None)
    assert configured(*shlex.split(str(made))).method == made
