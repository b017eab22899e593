"""The abilities of the three doors: each works, or an error states where it is."""

from __future__ import annotations

import inspect
import json

import pytest
from in_process import command, front_door

import spotsigs

PAGE = "The council has approved the plan for a new bridge that will be built by the end of the year."
ROWS = [{"id": str(k), "text": text} for k, text in enumerate([PAGE, "A win for the home side in the rain.", PAGE])]

ABILITIES = {
    "engine": (["--engine", "serial"], {"engine": "serial"}, "engine=serial"),
    "workers": (["--workers", "1"], {"workers": 1}, "workers=1"),
    "boilerplate": (["--boilerplate", "keep"], {"method": {"boilerplate": "keep"}}, "boilerplate=keep"),
    "clusters": (["--clusters", "components"], {"method": {"clusters": "components"}}, "clusters=components"),
    "keep": (["--keep", "longest"], {"keep": "longest"}, "keep=longest"),
    "min_contained": (["--min-contained", "0"], {"method": {"min_contained": 0}}, "min_contained=0"),
    "measure": (["--measure", "containment"], {"method": {"measure": "containment"}}, "matcher=containment"),
    "duplicates": (None, {"method": {"duplicates": "content"}}, "duplicates=content"),
    "memory": (["--memory", "2GB"], None, "memory=2GB"),
    "store": (["--store", "my.store"], None, "store=my.store"),
    "against": (["--against", "tests.jsonl"], {"against": ROWS[:1]}, "against=tests.jsonl"),
}
"""Words of the command, arguments of the functions or of Method.of (None: neither has it), and word of run.py."""


@pytest.fixture
def pages(tmp_path):
    for name, rows in (("pages.jsonl", ROWS), ("tests.jsonl", ROWS[:1])):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)) + "\n")
    return tmp_path


def kept(rows):
    return [row["id"] for row in rows]


@pytest.mark.parametrize("ability", ABILITIES)
def test_the_command_and_the_functions_decide_alike(ability, pages):
    words, arguments, _ = ABILITIES[ability]
    expected = ["1"] if ability == "against" else ["0", "1"]
    if words is not None:
        done = command("dedup", "pages.jsonl", "--out", "kept", *words, cwd=pages)
        assert done.returncode == 0, done.stderr
        [copy] = (pages / "kept").glob("[!.]*")
        assert kept(map(json.loads, copy.read_text().splitlines())) == expected
    if arguments is None:
        assert ability not in inspect.signature(spotsigs.dedup).parameters
        with pytest.raises(TypeError, match=rf"`spotsigs dedup INPUT --out FOLDER --{ability} "):
            spotsigs.dedup(ROWS, **{ability: "2GB"})
    else:
        if "method" in arguments:
            with pytest.raises(TypeError, match=rf"give method=spotsigs\.Method\.of\({ability}=\.\.\.\)"):
                spotsigs.dedup(ROWS, **arguments["method"])
            arguments = {"method": spotsigs.Method.of(**arguments["method"])}
        assert kept(spotsigs.dedup(ROWS, **arguments)) == expected


def test_run_py_has_them_or_names_the_command(pages):
    words = {ability: word for ability, (_, _, word) in ABILITIES.items()}
    of_the_command = [words.pop(ability) for ability in ("memory", "store", "against")]
    data = ("data=jsonl", f"data.path={pages / 'pages.jsonl'}")
    done = front_door(*data, *words.values(), cwd=pages)
    assert done.returncode == 0, done.stderr
    assert "3 documents" in done.stdout
    for word in of_the_command:
        done = front_door(*data, word, cwd=pages)
        assert done.returncode == 1
        assert "spotsigs dedup" in done.stderr


def test_a_function_states_which_function_has_its_missing_parameter():
    message = r"^near_duplicates\(\) does not take clusters=; give method=spotsigs\.Method\.of\(clusters=\.\.\.\)$"
    with pytest.raises(TypeError, match=message):
        spotsigs.near_duplicates(ROWS, clusters="components")
    with pytest.raises(TypeError, match="an engine has it, as in engine=spotsigs"):
        spotsigs.dedup(ROWS, address="tcp://head:8786")
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        spotsigs.dedup(ROWS, nonsense=1)
