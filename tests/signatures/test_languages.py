"""Pages in other languages than English: detected by their stopwords, compared by shingles if they have none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import command
from stores import match_on_disk, written
from strategies import by_rows

import spotsigs
from spotsigs.errors import InputError
from spotsigs.outofcore.pipeline import Store
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.languages import IN_SHINGLES, RAREST, language_of, languages, stopwords_of
from spotsigs.signatures.main_content import TEXT, MainContent
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.storage.exact_duplicates import Sameness
from spotsigs.text.tokens import tokenize
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

# From the Universal Declaration of Human Rights (United Nations, 1948), which is in the public domain.
REAL = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience "
    "and should act towards one another in a spirit of brotherhood. Everyone has the right to life, liberty and the "
    "security of person. No one shall be held in slavery or servitude; slavery and the slave trade shall be prohibited "
    "in all their forms. Everyone has the right to recognition everywhere as a person before the law.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt "
    "und sollen einander im Geiste der Brüderlichkeit begegnen. Jeder hat das Recht auf Leben, Freiheit und Sicherheit "
    "der Person. Niemand darf in Sklaverei oder Leibeigenschaft gehalten werden; Sklaverei und Sklavenhandel sind in "
    "allen ihren Formen verboten. Jeder hat das Recht, überall als rechtsfähig anerkannt zu werden.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité. Tout individu a droit à la "
    "vie, à la liberté et à la sûreté de sa personne. Nul ne sera tenu en esclavage ni en servitude; l'esclavage et la "
    "traite des esclaves sont interdits sous toutes leurs formes.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
    "conciencia, deben comportarse fraternalmente los unos con los otros. Todo individuo tiene derecho a la vida, a la "
    "libertad y a la seguridad de su persona. Nadie estará sometido a esclavitud ni a servidumbre; la esclavitud y la "
    "trata de esclavos están prohibidas en todas sus formas.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
    "должны поступать в отношении друг друга в духе братства. Каждый человек имеет право на жизнь, на свободу и на "
    "личную неприкосновенность. Никто не должен содержаться в рабстве или в подневольном состоянии.",
}
CHINESE = (
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。人人有权享有生命、自由和人身安全。"
    "任何人不得使为奴隶或奴役;一切形式的奴隶制度和奴隶买卖,均应予以禁止。任何人在任何地方有权被承认在法律前的人格。"
)
JAPANESE = (
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。"
)
CHANGED = CHINESE.replace("兄弟", "姐妹")
EDITS = {"de": ("Sicherheit", "Unversehrtheit"), "fr": ("fraternité", "solidarité"), "es": ("servidumbre", "esclavos")}


def edited(code: str) -> str:
    return REAL[code].replace(*EDITS.get(code, ("slavery", "bondage")))


def pairs_of(pages, **options):
    return list(by_rows(spotsigs.near_duplicates(pages, method=spotsigs.Method.of(duplicates="off", **options))))


@pytest.mark.parametrize("code", REAL)
def test_the_language_of_a_text_is_that_of_most_of_its_stopwords(code):
    language, share = language_of(tokenize(REAL[code]))
    assert language == code
    words = tokenize(REAL[code]).words
    assert share == sum(word in set(stopwords_of(code)) for word in words) / len(words)
    assert share > 4 * RAREST


def test_there_are_many_languages_and_those_without_spaces_are_not_among_them():
    assert len(languages()) > 50
    assert not {"zh", "ja", "th"} & set(languages())
    for text in (CHINESE, JAPANESE):
        assert language_of(tokenize(text))[1] < RAREST


def listing(rng, lines):
    """Lines of code: names of one letter, digits and words."""
    words = [*"abcdefghijklmnopqrstuvwxyz0123456789", *"bool void const ptr".split()]
    return "\n".join(" ".join(rng.choice(words, 8)) for _ in range(lines))


@pytest.mark.parametrize("lines", [0, 10, 100])
def test_an_english_page_with_code_is_english(lines):
    code = listing(np.random.default_rng(lines), lines)
    assert language_of(tokenize(f"{REAL['en']} {code}"))[0] == language_of(tokenize(code))[0] == "en"


def evidence(words, code):
    """Return the number of words that show a language: a vowel alone counts if a longer word does."""
    listed = [word for word in words if word in set(stopwords_of(code)) and not word.isdigit()]
    longer = sum(len(word) > 1 or not word.isascii() for word in listed)
    return longer + min(longer, sum(word in set("aeiouy") for word in listed))


@given(st.lists(st.sampled_from([*"aeikoyz1", *"the is of el la un que und der die les des w na pas".split()])))
@settings(max_examples=30, deadline=None)
def test_a_page_is_english_unless_another_language_is_clear(words):
    found = {code: evidence(words, code) for code in languages()}
    best = max(languages(), key=found.__getitem__)
    expected = best if found[best] > 1.5 * found["en"] else "en"
    language, fraction = language_of(tokenize(" ".join(words)))
    assert language == expected
    assert fraction == sum(word in set(stopwords_of(expected)) for word in words) / max(len(words), 1)


def test_editions_of_a_page_with_more_and_less_code_share_their_prose():
    rng = np.random.default_rng(1)
    pages = [f"{REAL['en']} {listing(rng, lines)}" for lines in (2, 14)]
    tokens = list(map(tokenize, pages))
    assert [language_of(one)[0] for one in tokens] == ["en", "en"]
    scheme = SpotSignatures(language="auto")
    shared = set(scheme(tokens[0]).tolist()) & set(scheme(tokens[1]).tolist())
    assert len(shared) > 0.8 * len(set(scheme(tokenize(REAL["en"])).tolist()))


def test_a_known_language_changes_nothing_else(tmp_path):
    """Short pages, pages without stopwords and Chinese ones are compared by shingles, as if it were detected."""
    rng = np.random.default_rng(2)
    prose = [REAL["en"], edited("en"), f"{REAL['en']} {listing(rng, 3)}", "The lamp costs 12+4 dollars in the shop."]
    other = [listing(rng, 20).replace(" ", "|"), CHINESE, CHANGED, "The lamp costs 12-4 dollars in the shop."]
    rows = [{"id": str(k), "text": text} for k, text in enumerate([*prose, *other, other[0] + "|q|q|q"])]
    written(tmp_path / "x.jsonl", rows)
    tables = []
    for k, words in enumerate([(), ("--language", "en")]):
        out = tmp_path / f"out{k}"
        done = command("dedup", tmp_path / "x.jsonl", "--out", out, "--tau", 0.3, "--workers", 1, *words)
        assert done.returncode == 0, done.stderr
        results = tmp_path / f"out{k}-results"
        tables.append([(results / f"{name}.csv").read_text() for name in ("kept", "removed")])
    assert tables[0] == tables[1]
    kept = dict(line.rsplit(",", 1) for line in tables[0][0].splitlines()[1:])
    assert kept["0,yes"] == "en"
    assert kept["5,yes"] == ""
    assert {"1", "6", "8"} <= {line.partition(",")[0] for line in tables[0][1].splitlines()[1:]}


def test_the_summary_and_the_kept_pages_have_the_languages(tmp_path):
    pages = [REAL["de"], edited("de"), CHINESE, REAL["ru"], REAL["en"], REAL["fr"]]
    path = written(tmp_path / "x.jsonl", [{"id": str(k), "text": page} for k, page in enumerate(pages)]).path
    for words in ((), ("--memory", "900MB")):
        done = command("dedup", path, "--out", tmp_path / "k", "--overwrite", "--workers", 1, *words)
        assert "pages by language: de 2, in none that is known 1, en 1, fr 1, ru 1\n" in done.stdout
        table = (tmp_path / "k-results" / "kept.csv").read_text().splitlines()
        assert table == ["doc,compared,language", "0,yes,de", "2,yes,", "3,yes,ru", "4,yes,en", "5,yes,fr"]


@pytest.mark.parametrize("code", ["de", "fr", "es"])
def test_changed_pages_of_a_language_are_near_duplicates(code):
    pages = [REAL[code], REAL["ru"], edited(code), REAL["en"]]
    assert pairs_of(pages) == pairs_of(pages, language=code) == [(0, 2)]
    in_english = SpotSignatures()(tokenize(REAL[code]))
    assert len(SpotSignatures(language=code)(tokenize(REAL[code]))) > 5 * max(len(in_english), 1)


def test_chinese_pages_are_compared_by_shingles():
    assert pairs_of([CHINESE, JAPANESE, CHINESE, CHANGED]) == [(0, 2), (0, 3), (2, 3)]
    paper = SpotSignatures()
    assert pairs_of([CHINESE, CHINESE], signature=paper) == []  # no stopword, no signature


def test_a_text_is_tokenized_by_its_language():
    scheme = SpotSignatures(language="auto")
    for code in ("de", "fr"):
        tokens = tokenize(REAL[code])
        alone, known = SpotSignatures(language=code), SpotSignatures(language=code, shingles=True)
        assert scheme.readable(REAL[code]) == alone.readable(REAL[code])
        assert scheme(tokens).tolist() == (alone(tokens) & ~IN_SHINGLES).tolist() == known(tokens).tolist()
    assert scheme.readable(REAL["en"]) == SpotSignatures().readable(REAL["en"])
    assert scheme.readable("人人生而")[0] == "人人:人生:生而"
    assert scheme.readable("人人") == ["人人"]
    assert scheme.readable("") == []
    for text in (REAL["de"], CHINESE):
        assert len(scheme.readable(text)) == len(scheme(tokenize(text))) == len(scheme.chains(tokenize(text)))


@pytest.mark.parametrize("kind", [MainContent, TemplateRemoval])
def test_schemes_for_boilerplate_detect_languages(kind):
    plain = SpotSignatures(d=1, c=2, language="auto")
    for text in (REAL["de"], CHINESE):
        assert sorted(kind(signature=plain)(tokenize(text)).tolist()) == sorted(plain(tokenize(text)).tolist())


def test_a_chinese_page_is_compared_by_its_shingles_whatever_its_menu_is():
    scheme = TemplateRemoval(signature=SpotSignatures(language="auto"))
    menu = "this is the menu of all that we have and it will be the same on each page"
    for text in (CHINESE, f"{menu} {CHINESE}"):
        tokens = tokenize(text)
        kinds = scheme.outline(tokens)[1]
        assert (scheme.signature(tokens) & IN_SHINGLES).all()
        assert (kinds == TEXT).all()


@given(order=st.permutations([*REAL.values(), *map(edited, EDITS), CHINESE, CHINESE[:-6], JAPANESE]))
@settings(max_examples=20, deadline=None)
def test_the_pairs_are_the_same_in_any_order(order):
    texts = {frozenset((order[i], order[j])) for i, j in pairs_of(order)}
    assert texts == {frozenset((REAL[code], edited(code))) for code in EDITS} | {frozenset((CHINESE, CHINESE[:-6]))}


def test_languages_on_disk_with_added_pages(tmp_path):
    pages = {"de": REAL["de"], "zh": CHINESE, "ru": REAL["ru"]}
    new = {"de2": edited("de"), "zh2": CHANGED}
    scheme, text = SpotSignatures(language="auto"), VisibleText()
    for rows, add in ((pages, False), (new, True)):
        collection = written(tmp_path / "x.jsonl", [{"id": k, "text": v} for k, v in rows.items()])
        actual = match_on_disk(
            tmp_path / "store",
            collection,
            text,
            scheme,
            IdfFilter(),
            0.44,
            Serial(),
            memory=10**9,
            add=add,
            duplicates=Sameness.text,
        )
    everything = spotsigs.near_duplicates([*pages.values(), *new.values()])
    assert by_rows(actual.pairs) == by_rows(everything)
    assert list(by_rows(everything)) == [(0, 3), (1, 4)]
    assert actual.signatures.in_shingles() == 2
    assert Store.open(tmp_path / "store").method.signature == scheme


def test_the_representation_of_a_scheme_names_its_language():
    assert repr(SpotSignatures()).endswith("include_antecedent=True)")
    assert "language='de'" in repr(TemplateRemoval(signature=SpotSignatures(language="de")))


def test_a_language_without_a_list_is_refused():
    with pytest.raises(InputError, match="no stopwords for language 'zh': give auto"):
        SpotSignatures(language="zh")
    with pytest.raises(InputError, match="no stopwords for language 'German'"):
        spotsigs.Method.of(language="German")


def test_the_command_prints_how_many_pages_were_compared_by_shingles(tmp_path, capsys):
    from spotsigs.doors.cli import main

    pages = [REAL["de"], edited("de"), CHINESE, CHANGED, REAL["ru"]]
    written(tmp_path / "pages.jsonl", [{"id": str(k), "text": page} for k, page in enumerate(pages)])
    main(["dedup", str(tmp_path / "pages.jsonl"), "--out", str(tmp_path / "kept"), "--workers", "1"])
    printed = capsys.readouterr().out
    assert "5 pages, 2 removed" in printed
    assert "2 documents with few or no spot signatures: compared by shingles" in printed
    metrics = json.loads((tmp_path / "kept-results" / "metrics.json").read_text())
    assert metrics["documents_in_shingles"] == 2
