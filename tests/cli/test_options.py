"""One list of options: the doors have its names, its choices and its defaults."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command, front_door
from strategies import examples

import spotsigs
from experiments.config import KEYS, Root
from spotsigs.errors import InputError, flag, option, spelled
from spotsigs.method import CHOICES, Method
from spotsigs.options import OPTIONS, Door, as_option, elsewhere, function_options, options_of

FUNCTIONS = {"dedup": spotsigs.dedup, "near_duplicates": spotsigs.near_duplicates, "Method.of": Method.of}
OF_GROUPS = {"text", "matcher"}
"""Parameters of Method.of that are groups of run.py."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functions_have_the_parameters_of_the_list(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    known = function_options(name)
    others = OF_GROUPS if name == "Method.of" else {"pages"}
    assert set(parameters) - others == set(known)
    for key, one in known.items():
        default = parameters[key].default
        assert default is None or default == one.defaults[Door.function], key


def test_the_functions_have_at_most_twelve_parameters():
    for name in ("dedup", "near_duplicates"):
        assert len(inspect.signature(FUNCTIONS[name]).parameters) <= 12


@pytest.mark.parametrize("name", CHOICES)
def test_the_choices_are_those_of_the_enumeration(name):
    by_score = {"largest", "smallest"} if name == "keep" else set()
    for one in OPTIONS:
        if one.name == name:
            assert {*one.choices} | by_score == {member.value for member in CHOICES[name]}


def test_the_keys_of_run_py_are_those_of_the_list():
    assert set(KEYS) <= set(Root.__dataclass_fields__)
    shown = front_door("--help").stdout
    for name, one in KEYS.items():
        assert f"  {name}=" in shown
        assert " ".join(one.described(Door.run).split()) in " ".join(shown.split())


@pytest.mark.parametrize("verb", ["dedup", "pairs", "cluster", "threshold", "inspect"])
def test_the_help_of_a_verb_has_the_options_of_the_list(verb):
    shown = " ".join(command(verb, "--help").stdout.split())
    for one in options_of(Door.command, verb).values():
        assert f"{one.typed} {one.form}".strip() in shown
        words = one.described(Door.command).replace("-", "- ").split()  # a line may end after a hyphen
        assert " ".join(words) in " ".join(shown.replace("-", "- ").split()), one.name


@pytest.mark.parametrize("name", [one.name for one in OPTIONS])
@pytest.mark.parametrize("door", Door)
def test_an_option_that_a_door_lacks_is_somewhere_else(door, name):
    if any(door in one.defaults for one in OPTIONS if one.name == name):
        return
    assert elsewhere(name, door)


@given(st.sampled_from([one.name for one in OPTIONS]), st.text(max_size=9).filter(str.isprintable))
@examples(60)
def test_a_message_is_spelled_by_the_door_that_prints_it(name, value):
    error = InputError(f"give {option(name, value)}, or leave out {flag(name)} of {value}")
    assert str(error) == f"give {name}={value}, or leave out {name} of {value}"
    typed = as_option(name, None)
    assert error.spelled(as_option).endswith(f", or leave out {typed} of {value}")
    assert error.spelled(as_option).startswith(f"give {typed}")
    assert spelled(value) == value
