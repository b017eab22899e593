"""The key of a cell depends on the modules that its method and its collection use, and on no others."""

from __future__ import annotations

from dataclasses import replace

from runs import configured

from experiments.grid import cell_key
from experiments.harness.used_code import ROOT, code_in, modules_of, used_files


def files_of(*words):
    chosen = configured(*words)
    modules = modules_of(chosen.method, chosen.collection)
    return {path.relative_to(ROOT).as_posix() for path in used_files("spotsigs.method", *sorted(modules))}


def test_a_method_uses_its_modules_and_the_data_beside_them():
    files = files_of("data=gold", "matcher=lsh_native")
    assert {"baselines/lsh_native.py", "spotsigs/signatures/spots.py", "spotsigs/text/visible.py"} <= files
    assert {"data/collections/gold/words.toml", "spotsigs/signatures/stopwords/smart.txt"} <= files
    others = {"spotsigs/doors/cli.py", "spotsigs/formats/warc.py", "experiments/main.py", "baselines/imatch.py"}
    assert not files & others
    assert all((ROOT / name).exists() for name in others - {"spotsigs/formats/warc.py"})
    assert "baselines/imatch.py" in files_of("data=gold", "matcher=imatch")


def test_a_module_of_a_user_counts(tmp_path, monkeypatch):
    text = "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    tau: float = 0.5\n"
    (tmp_path / "mine_of_test.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import mine_of_test

    assert tmp_path / "mine_of_test.py" in used_files(*modules_of(mine_of_test.Mine()))


def test_the_key_differs_by_threshold_seed_and_parameters_but_not_by_threads():
    chosen = configured("data=tiny", "matcher=lsh_native")
    method, collection = chosen.method, chosen.collection
    keys = [
        cell_key(method, collection, 1),
        cell_key(method.at(0.7), collection, 1),
        cell_key(method, collection, 2),
        cell_key(replace(method, matcher=replace(method.matcher, l=7)), collection, 1),
    ]
    assert len(set(keys)) == 4
    assert cell_key(replace(method, matcher=method.matcher.with_threads(3)), collection, 1) == keys[0]


MODULE = '''
"""Words."""
from typing import Any
LIMIT = 3
"""Words of a constant."""
class Some:
    """Words."""
    def read(self, text: str) -> Any:
        """Words."""
        try:
            return text + "a # b"  # words
        except ValueError:
            "words"
            raise
'''


def test_words_and_layout_are_no_code():
    plain = MODULE.replace('"""Words."""', "").replace('"""Words of a constant."""', "").replace("# words", "")
    plain = plain.replace('"words"\n', "\n\n")
    assert code_in("a.py", MODULE.encode()) == code_in("a.py", plain.encode())
    for before, after in (("3", "4"), ("a # b", "a # c"), ("text: str", "text: int"), ("raise", "raise TypeError")):
        assert code_in("a.py", MODULE.encode()) != code_in("a.py", MODULE.replace(before, after).encode())


def test_comments_of_the_configuration_are_no_code_and_other_files_are_as_they_are():
    assert code_in("a.yaml", b"tau: 0.5  # words\n") == code_in("a.yaml", b"# words\ntau: 0.50\n")
    assert code_in("a.yaml", b"tau: 0.5\nk: 1\n") != code_in("a.yaml", b"tau: 0.6\nk: 1\n")
    assert code_in("a.yaml", b"experiment: {k: 1, takes: {minutes: 2}}") == code_in("a.yaml", b"experiment: {k: 1}")
    assert code_in("a.yaml", b"experiment: {k: 1}") != code_in("a.yaml", b"experiment: {k: 2}")
    assert code_in("a.txt", b"a # b") == b"a # b"
    assert code_in("a.py", b"def") == b"def"
