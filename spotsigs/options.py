"""The options of all doors, in one list: the command, the functions and ``run.py`` take their names and defaults here.

A new option is an `Option` in `OPTIONS` and the code that uses it; ``python -m experiments.show.pages`` writes it
into the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from numbers import Real
from typing import Any

from spotsigs.errors import InputError, as_key, flag, require, shown

TAU_PAGES = 0.25
"""Similarity threshold of pages with links, whose templates are removed (docs/boilerplate.md)."""

TAU = 0.44
"""Similarity threshold of matchers, of text, and of pages with their boilerplate: the paper's."""

TAU_CONTAINED = 0.8
"""Similarity threshold of containment: most of the shorter document is in the longer one."""

PROBED = 32
"""Documents at the beginning of the input that decide between the two thresholds."""

BAND = (0.2, 1.0)
"""Band of normalised IDF of experiments, unless the collection is the paper's."""

SEED = 2008
"""Seed of the methods that draw random functions."""

MIN_CONTAINED = 0.3
"""Least fraction of the text of a removed page that the kept one contains, see `spotsigs.signatures.contained`."""

LANGUAGE = "auto"
"""Language of the pages by default: the language of each page is detected."""

AUTO = "auto"
"""Value of an end of the IDF band for which the collection decides."""


class Door(Enum):
    """Where a user types an option."""

    command = "the command"
    function = "functions"
    run = "run.py"


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option: its name, the form of its value, its default in each door that has it, and its help.

    Attributes
    ----------
    name : str
        The keyword of a function and the key of ``run.py``; the command's option is the name after two hyphens.
    form : str
        What help shows for the value: alternatives such as ``first|longest``, ``NUMBER`` or ``FRACTION``, ``N`` for a
        whole number of at least 1, another word for text. An option without a form is a switch.
    defaults : mapping of Door to object
        Default in each door that has the option.
    help : str
        What it does, in whole sentences that are true in every door.
    notes : mapping of Door to str
        What help adds in one door; without a note, it adds the default.
    verbs : tuple of str
        Verbs of the command that have it.
    functions : tuple of str
        The functions that have it.
    within : str
        Interval of a number, such as ``(0, 1]``.
    flag : str
        Its name in the command, if that differs.
    required : bool
        Whether the command needs it.
    """

    name: str
    form: str = ""
    defaults: Mapping[Door, Any]
    help: str
    notes: Mapping[Door, str] = field(default_factory=dict)
    verbs: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    within: str = ""
    flag: str = ""
    required: bool = False

    @property
    def typed(self) -> str:
        """The option of the command, such as ``--min-contained``."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an option with alternatives."""
        return tuple(self.form.split("|")) if "|" in self.form else ()

    def described(self, door: Door) -> str:
        """Return the help in a door, with its default."""
        default = self.defaults[door]
        usual = "" if default in (None, False, "") or self.required else f"The default is {plain(default)}."
        return " ".join(filter(None, (self.help, self.notes.get(door, usual))))

    def read(self, text: str) -> Any:
        """Return the value that a text of the command stands for, or raise `InputError`.

        Whether a choice is known is checked where it is used, see `spotsigs.method.Method.of`.
        """
        if self.form == "N":
            known = text.isascii() and text.isdigit() and int(text) >= 1
            require(known, f"{flag(self.name)} must be at least 1, got {text}")
            return int(text)
        if self.form not in NUMBERS:
            return text
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{flag(self.name)} must be a number in {self.within}, got {shown(text)}") from None

    def checked(self, value: Any) -> Any:
        """Return a value of the functions or ``run.py``, or raise `InputError` if its number is out of range."""
        if self.form in NUMBERS:
            number = isinstance(value, Real) and not isinstance(value, bool)
            allowed = f"{flag(self.name)} must be a number in {self.within}, got {shown(value)}"
            require(number and _inside(float(value), self.within), allowed)
        return value


NUMBERS = ("NUMBER", "FRACTION")
"""Forms of options whose values are numbers."""


def _inside(number: float, within: str) -> bool:
    """Return whether a number is in an interval such as ``(0, 1]``."""
    low, high = map(float, within[1:-1].split(","))
    return (low < number if within[0] == "(" else low <= number) and number <= high


COMMAND, FUNCTION, RUN = Door.command, Door.function, Door.run

INPUT = ("dedup", "pairs", "cluster", "threshold", "inspect")
STORED = ("dedup", "pairs", "cluster", "inspect")
TABLES = ("pairs", "cluster", "threshold", "inspect")
AGAINST = ("dedup", "pairs")
"""Verbs that read an input, that can write a store, that write tables only, and that compare with a reference."""

BOTH = ("near_duplicates", "dedup")
OF_METHOD = ("Method.of",)
"""Functions that match pages, and the function that makes a method for them."""

OPTIONS = (
    Option(
        name="data",
        form="FORMAT",
        defaults={COMMAND: None},
        help="Name the format of the input. Without the option, its content shows it.",
        verbs=INPUT,
        flag="--format",
    ),
    *(
        Option(
            name=f"{column}_column",
            form="COLUMN",
            defaults={COMMAND: None},
            help=f"Name the column that has the {column} of each document.",
            verbs=INPUT,
            flag=f"--{column}",
        )
        for column in ("id", "text", "html", "cluster", "date")
    ),
    *(
        Option(
            name=column,
            form="COLUMN",
            defaults={FUNCTION: column},
            help=f"Name the column that has the {column} of each page.",
            functions=BOTH,
        )
        for column in ("text", "html", "id")
    ),
    Option(
        name="date",
        form="COLUMN",
        defaults={FUNCTION: "date"},
        help="Name the column that has the date of each page.",
        functions=("dedup",),
    ),
    Option(
        name="memory",
        form="SIZE",
        defaults={COMMAND: None},
        help="Keep the memory of all processes together below this size, such as 2GB.",
        verbs=INPUT,
    ),
    Option(
        name="engine",
        form="processes|serial|dask",
        defaults={COMMAND: "processes", FUNCTION: "processes"},
        help="Choose where the work runs.",
        notes={COMMAND: "The default is processes of this machine."},
        verbs=INPUT,
        functions=BOTH,
    ),
    Option(
        name="address",
        form="ADDRESS",
        defaults={COMMAND: None},
        help="Use the running Dask cluster at this address, such as tcp://head:8786.",
        verbs=INPUT,
    ),
    Option(
        name="workers",
        form="N",
        defaults={COMMAND: None, FUNCTION: 1, RUN: 8},
        help="Start N worker processes. For a running cluster, state how many workers it has.",
        notes={
            COMMAND: "The default is the number of cores.",
            RUN: "Extraction uses no more than there are cores. The default is 8.",
        },
        verbs=INPUT,
        functions=BOTH,
    ),
    Option(
        name="threads",
        form="N",
        defaults={FUNCTION: None, RUN: None},
        help="Use N threads for the join. The default is one for each core.",
        functions=OF_METHOD,
    ),
    Option(
        name="log",
        form="text|json",
        defaults={COMMAND: "text"},
        help="Choose the form of the lines about progress that are written without a terminal.",
        verbs=INPUT,
    ),
    Option(
        name="strict",
        defaults={COMMAND: False},
        help="Stop at the first record that cannot be read.",
        verbs=INPUT,
    ),
    Option(
        name="tau",
        form="NUMBER",
        defaults={COMMAND: None, FUNCTION: None, RUN: TAU},
        help="Set the similarity from which two documents are near-duplicates.",
        notes={
            COMMAND: "The default is the threshold of the store; without a store, it is "
            f"{TAU_PAGES:g} for pages with links, {TAU:g} for text and with --boilerplate keep, and {TAU_CONTAINED:g} "
            "with --measure containment.",
            FUNCTION: f"The default is {TAU_PAGES:g} for pages with links, {TAU:g} for text and with "
            f"boilerplate='keep', and {TAU_CONTAINED:g} with measure='containment'.",
        },
        verbs=INPUT,
        functions=(*BOTH, *OF_METHOD),
        within="(0, 1]",
    ),
    Option(
        name="signature",
        form="SCHEME",
        defaults={FUNCTION: "spotsigs"},
        help="Choose the signatures: spot signatures, or a signature scheme of your own.",
        functions=OF_METHOD,
    ),
    Option(
        name="boilerplate",
        form="auto|remove|keep|main_content",
        defaults={COMMAND: None, FUNCTION: "auto", RUN: "keep"},
        help="Choose what is compared of pages with links. The value remove leaves out the template that the pages of "
        "a site share.",
        notes={
            COMMAND: "The default is auto, or the choice of the store.",
            FUNCTION: "The default is auto, and keep for a signature scheme of your own.",
        },
        verbs=INPUT,
        functions=OF_METHOD,
    ),
    Option(
        name="language",
        form="CODE",
        defaults={COMMAND: None, FUNCTION: LANGUAGE},
        help="State the language of all pages, such as en, de or fr. Without the option, the language of each page is "
        "detected.",
        notes={COMMAND: "The column language of kept.csv has it. A store keeps its language.", FUNCTION: ""},
        verbs=INPUT,
        functions=OF_METHOD,
    ),
    Option(
        name="idf_min",
        form="NUMBER",
        defaults={COMMAND: 0.0, FUNCTION: 0.0, RUN: AUTO},
        help="Leave out signatures that are less rare than this, from 0 to 1.",
        notes={RUN: "The collection decides by default: 0.2."},
        verbs=INPUT,
        functions=OF_METHOD,
        within="[0, 1]",
    ),
    Option(
        name="idf_max",
        form="NUMBER",
        defaults={COMMAND: 1.0, FUNCTION: 1.0, RUN: AUTO},
        help="Leave out signatures that are rarer than this, from 0 to 1.",
        notes={RUN: "The collection decides by default: 0.85, the paper's value, for data=gold, and 1 for others."},
        verbs=INPUT,
        functions=OF_METHOD,
        within="[0, 1]",
    ),
    Option(
        name="idf",
        form="paper|prototype",
        defaults={FUNCTION: "paper", RUN: "paper"},
        help="Choose the formula of the IDF: the paper has log(N/df)/log(N), the prototype log((N+1)/df)/log(N+1).",
        functions=OF_METHOD,
    ),
    Option(
        name="min_spots",
        form="N",
        defaults={FUNCTION: 1, RUN: 1},
        help="Match only documents with at least this many signatures in the band. Others count in recall.",
        functions=OF_METHOD,
    ),
    Option(
        name="sets",
        defaults={FUNCTION: False, RUN: False},
        help="Count every signature of a document once.",
        functions=OF_METHOD,
    ),
    Option(
        name="duplicates",
        form="text|content|off",
        defaults={FUNCTION: "text", RUN: "text"},
        help="Choose which documents are exact duplicates: documents of the same content or visible text, documents of "
        "the same content, or none.",
        functions=OF_METHOD,
    ),
    Option(
        name="measure",
        form="jaccard|containment",
        defaults={COMMAND: "jaccard", FUNCTION: "jaccard"},
        help="Choose the measure of similarity. The value containment divides the intersection by the signatures of "
        "the shorter page, which finds a teaser in its article.",
        verbs=STORED,
        functions=OF_METHOD,
    ),
    Option(
        name="clusters",
        form="leaders|components",
        defaults={COMMAND: "leaders", FUNCTION: "leaders", RUN: "leaders"},
        help="Choose how pairs become clusters. With leaders, each removed page reaches tau with a page that stays; "
        "with components, it is connected with that page by pairs.",
        verbs=INPUT,
        functions=OF_METHOD,
    ),
    Option(
        name="keep",
        form="first|longest|newest|none",
        defaults={COMMAND: "first", FUNCTION: "first", RUN: "first"},
        help="Choose which document of a cluster stays; none removes all of them. With longest, a complete page stays "
        "in place of one that was cut off.",
        verbs=INPUT,
        functions=("dedup", *OF_METHOD),
    ),
    Option(
        name="keep_by",
        form="COLUMN",
        defaults={COMMAND: None, FUNCTION: None},
        help="Keep the document that has the largest score in this column. A hyphen before the name keeps the "
        "smallest.",
        verbs=INPUT,
        functions=("dedup",),
    ),
    Option(
        name="min_contained",
        form="FRACTION",
        defaults={COMMAND: None, FUNCTION: MIN_CONTAINED, RUN: 0.0},
        help="Remove a page only if the kept page contains at least this fraction of its text. With 0, tau alone "
        "decides.",
        notes={
            COMMAND: f"The default is {MIN_CONTAINED:g}, or the fraction of the store.",
            FUNCTION: f"The default is {MIN_CONTAINED:g}, and 0 for a scheme that does not locate its signatures.",
        },
        verbs=INPUT,
        functions=OF_METHOD,
        within="[0, 1]",
    ),
    Option(
        name="method",
        form="METHOD",
        defaults={FUNCTION: None},
        help="Give the method that Method.of makes of further options.",
        functions=BOTH,
    ),
    Option(
        name="out",
        form="FOLDER",
        defaults={COMMAND: None},
        help="Write the copy there, in the input's own format. The value - prints the kept documents as JSON lines; "
        "none writes only the tables of --results.",
        verbs=("dedup",),
        required=True,
    ),
    Option(
        name="out",
        form="FOLDER",
        defaults={COMMAND: None},
        help="Write the tables of the run into this folder.",
        verbs=TABLES,
    ),
    Option(
        name="results",
        form="FOLDER",
        defaults={COMMAND: None},
        help="Write the tables of the run there. The default is the folder of the copy followed by -results.",
        verbs=("dedup",),
    ),
    Option(
        name="overwrite",
        defaults={COMMAND: False},
        help="Replace the copy that an earlier run wrote there. A folder with any other file is never replaced.",
        verbs=("dedup",),
    ),
    Option(
        name="no_open",
        defaults={COMMAND: False},
        help="Write the page, and open no browser.",
        verbs=("inspect",),
    ),
    Option(
        name="store",
        form="FOLDER",
        defaults={COMMAND: None},
        help="Keep the signatures there, so that a later run can add pages or compare with them.",
        verbs=STORED,
    ),
    Option(
        name="add",
        defaults={COMMAND: False},
        help="Add the input to the store, and report only pairs that have a new document.",
        verbs=STORED,
    ),
    Option(
        name="against",
        form="REFERENCE",
        defaults={COMMAND: None, FUNCTION: None},
        help="Compare the input with the documents of this reference. They are always kept and never copied.",
        notes={COMMAND: "The reference is a store or an input of any format.", FUNCTION: ""},
        verbs=AGAINST,
        functions=BOTH,
    ),
    Option(
        name="against_text",
        form="COLUMN",
        defaults={COMMAND: None},
        help="Name the column that has the text of each document of the reference.",
        verbs=AGAINST,
    ),
    Option(name="seed", form="N", defaults={RUN: SEED}, help="Set the seed of methods that draw random functions."),
    Option(
        name="timing",
        form="BOOLEAN",
        defaults={RUN: False},
        help="With true, a sweep runs its cells one by one, each alone on the machine, so that times compare. With "
        "now, an experiment does not wait for a quiet machine.",
    ),
    Option(name="debug", defaults={RUN: False}, help="Show the traceback of an error."),
)
"""Every option but the groups of ``run.py``, in the order in which help lists them."""


def options_of(door: Door, verb: str = "") -> dict[str, Option]:
    """Return the options of a door, or of a verb of the command, by name."""
    return {option.name: option for option in OPTIONS if door in option.defaults and (not verb or verb in option.verbs)}


def function_options(function: str) -> dict[str, Option]:
    """Return the options of ``near_duplicates``, ``dedup`` or ``Method.of``, by name."""
    return {option.name: option for option in OPTIONS if function in option.functions}


def method_options(door: Door) -> list[str]:
    """Return the names of the options of ``Method.of`` that a door has, so that it passes on each of them."""
    return [name for name, option in function_options("Method.of").items() if door in option.defaults]


# spelling

_UNQUOTED = re.compile(r"[A-Za-z_@/.][\w./@:-]*")
_MEANINGS = ("null", "true", "false", "nan", "inf")

_OTHER_NAMES = {"hydra.run.dir": "--out", "copy": "--out"}
"""Options of the command for the folders of a run and of its copy."""


def as_option(name: str, value: str | None) -> str:
    """Spell an option in a message as the command ``spotsigs`` does, see `spotsigs.errors.spelled`.

    Examples
    --------
    >>> as_option("min_contained", "0.5"), as_option("strict", "true"), as_option("html_column", None)
    ('--min-contained 0.5', '--strict', '--html')
    """
    option = options_of(Door.command).get(name)
    word = option.typed if option else _OTHER_NAMES.get(name, f"--{name.replace('_', '-')}")
    return word if not value or (option and not option.form) else f"{word} {value}"


def plain(value: object) -> str:
    """Return a value as ``run.py`` reads it; texts with signs that have a meaning there are quoted.

    Examples
    --------
    >>> plain(None), plain(True), plain(["a", "that(5,2)"])
    ('null', 'true', "[a,'that(5,2)']")
    """
    value = getattr(value, "value", value)
    if isinstance(value, str):
        simple = _UNQUOTED.fullmatch(value) and value.lower() not in _MEANINGS
        return value if simple else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(plain, value))}]"
    return "null" if value is None else str(value).lower()


SPELLINGS = {Door.command: as_option, Door.function: as_key, Door.run: as_key}
"""How each door spells the options in messages."""


# where an option is that a door lacks

_REPLACED = {
    "copies": "duplicates= of run.py and Method.of takes its place",
    "copy": "`spotsigs dedup INPUT --out FOLDER` writes a copy",
    "matcher": "`python run.py matcher=lsh` has it",
    "page": "`spotsigs inspect INPUT` shows the clusters",
    "query": "`spotsigs pairs PAGE --against STORE` queries a store",
}
"""What takes the place of names that are no option, or that ``run.py`` alone has."""


def elsewhere(name: str, door: Door) -> str | None:
    """Return where an option is that a door lacks, as a sentence; None if no door has it."""
    option = next((option for option in OPTIONS if option.name == name and door not in option.defaults), None)
    if door is Door.function and name in function_options("Method.of"):
        return f"give method=spotsigs.Method.of({name}=...)"
    if name == "address" and door is Door.function:
        return "an engine has it, as in engine=spotsigs.workers.engines.Dask(workers=4, address=...)"
    if name == "measure" and door is Door.run:
        return "matcher=containment takes its place"
    if option is None:
        return None if name == "matcher" and door is Door.run else _REPLACED.get(name)
    if Door.command in option.defaults:
        verb = "inspect INPUT" if name == "no_open" else "dedup INPUT --out FOLDER"
        return f"`spotsigs {verb} {option.typed}{option.form and ' '}{option.form}` has it"
    if "Method.of" in option.functions:
        return f"the functions have it, as in spotsigs.dedup(pages, method=spotsigs.Method.of({name}=...))"
    if option.functions:
        return f"the function has it, as in spotsigs.dedup(pages, {name}=...)"
    return f"`python run.py {name}={plain(option.defaults[Door.run])}` has it"


_LINK = re.compile(r"<a\s[^<>]{0,1000}?\bhref", re.IGNORECASE)


def default_tau(contents: Iterable[object], removes_templates: bool) -> float:
    """Return the threshold for documents with some contents if the user sets none.

    It is `TAU_PAGES` if templates are removed and one of the first `PROBED` contents has a link, `TAU` otherwise.
    Contents that are neither text nor bytes are passed over.
    """
    if not removes_templates:
        return TAU
    for content in islice(contents, PROBED):
        text = content.decode("latin-1") if isinstance(content, bytes) else content
        if isinstance(text, str) and _LINK.search(text):
            return TAU_PAGES
    return TAU
