"""Checked settings from the configuration that Hydra composes."""

from __future__ import annotations

import re
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from difflib import get_close_matches
from errno import EACCES, EDQUOT, EEXIST, ENAMETOOLONG, ENOSPC, ENOTDIR, EROFS
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from hydra import compose
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from data.truth import WithTruth
from experiments.choices import CONF, GROUPS, ChoiceNames, make, without_repeated_defaults
from experiments.run_folders import variant
from spotsigs.errors import InputError, as_tau, printable, reason, require
from spotsigs.method import CHOICES, Method
from spotsigs.options import AUTO, BAND, Door, Option, elsewhere, method_options, options_of, plain
from spotsigs.storage.atomic import failed_path
from spotsigs.workers.engines import Engine

if TYPE_CHECKING:
    from spotsigs.runs.stages import Run

NOT_OF_RESULTS = ("experiment", "workers", "threads", "engine", "timing")
"""Keys that change no result of an experiment."""
ROOT_KEYS = ("tau", "threads", "workers", "seed")
"""Keys whose values a plug-in's fields of the same name have as well."""

NOW = "now"
"""Value of ``timing`` with which an experiment does not wait for a quiet machine."""

OF_METHODS = "experiment.methods."
"""Beginning of the keys of an experiment's methods."""

OF_COMPARE = ("methods", "collections")
"""Keys of ``experiment=compare``."""

ENDS = ("idf_min", "idf_max")

PAPER_DATA, PAPER_BAND = "gold", (0.2, 0.85)
"""A collection, and the band of normalised IDF that its pages are filtered by unless the user gives another."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The checked configuration of a run or an experiment.

    workers, threads, seed, timing
        Root keys.
    typed_tau : float
        Key ``tau``.
    experiment : Experiment or None
        Called with these settings instead of a single run.
    work : Work or None
        Where the experiment writes, if not below `Experiment.results`; see `experiments.harness.study.run`.
    """

    collection: Any  # documents, or vectors
    method: Method  # method of a single run; an experiment has its own methods
    engine: Engine  # runs the extraction
    names: dict[str, str]  # the user's choice in each group, for example ``{"matcher": "spotsigs"}``
    workers: int
    threads: int | None
    seed: int
    timing: bool | str
    typed_tau: float
    experiment: Any = None
    work: Any = None

    @property
    def tau(self) -> float:
        """Threshold; of a method without one, the key that it ignores."""
        return self.typed_tau if self.method.tau is None else self.method.threshold

    def at(self, tau: Any) -> Settings:
        """Return the settings with another threshold, which is checked."""
        tau = checked_tau(tau)
        return replace(self, method=self.method.at(tau), typed_tau=tau)

    def run(self, folder: Path) -> Run:
        """Return the run of the collection that writes to a folder."""
        from spotsigs.runs.stages import Output, Run

        return Run(
            collection=self.collection,
            data=self.names["data"],
            output=Output(folder=folder),
            engine=self.engine,
            seed=self.seed,
            spelling=ChoiceNames(self.names),
        )


KEYS = options_of(Door.run)
"""The root keys of ``run.py`` but its groups; see `spotsigs.options`."""


def _kind(option: Option) -> Any:
    """Return the type of a key for OmegaConf; numbers may also be `AUTO` or text of an environment variable."""
    if option.name in CHOICES:
        return CHOICES[option.name]
    kinds: dict[str, Any] = {"": bool, "N": int, "FRACTION": float}
    kind = kinds.get(option.form, Any)
    return kind | None if option.defaults[Door.run] is None else kind


Root = make_dataclass(
    "Root",
    [(option.name, _kind(option), option.defaults[Door.run]) for option in KEYS.values()]
    + [(name, Any, None) for name in (*GROUPS, *OF_COMPARE)],
)
"""Types and defaults of the root keys and groups."""

OF_METHOD = (
    *("text", "signature", "matcher", "tau"),
    *(name for name in method_options(Door.run) if name not in ("tau", "threads")),
)
"""Groups and keys of a method."""

ConfigStore.instance().store(name="schema", node=Root)

ConfigStore.instance().store(
    group="hydra/launcher", name="cells", node={"_target_": "hydra_plugins.spotsigs_cells.CellLauncher"}
)

EVERY_EXPERIMENT = ("experiment", "data", "text", "engine", "workers", "threads", "seed", "timing", "debug", "hydra")
"""Groups and keys that every experiment reads."""


@dataclass(frozen=True, kw_only=True)
class Takes:
    """Time, memory and disk that an experiment takes on two cores without earlier results, roughly.

    Zeros state that they depend on the pages.
    """

    minutes: float = 0  # wall time
    # Peak memory, and cached cells and signatures.
    memory_gb: float = 0
    disk_gb: float = 0
    downloads: list[str] = field(default_factory=list)  # collections that are downloaded once, if they were not

    def __str__(self) -> str:
        time = f"{self.minutes / 60:.1f} hours" if self.minutes >= 90 else f"{max(self.minutes, 1):.0f} min"
        once = f"; downloads {', '.join(self.downloads)}, once" if self.downloads else ""
        return f"about {time} on two cores, {self.memory_gb:g} GB of memory, {self.disk_gb:.2g} GB of disk{once}"


def all_takes(every: Iterable[Takes]) -> Takes:
    """Return what several experiments take, one after the other."""
    known = list(every)
    return Takes(
        minutes=sum(one.minutes for one in known),
        memory_gb=max((one.memory_gb for one in known), default=0),
        disk_gb=sum(one.disk_gb for one in known),
        downloads=list(dict.fromkeys(name for one in known for name in one.downloads)),
    )


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """Base of the experiments, which have a YAML file in ``conf/experiment/`` each and run in place of a single run."""

    # Whether a run writes the whole folder of the experiment; otherwise it adds to it, or derives it from the others.
    replaces: ClassVar[bool] = True
    # Groups and root keys that it reads besides `EVERY_EXPERIMENT`; others are refused on the command line.
    reads: list[str] = field(default_factory=list)
    results: Path = Path("results")  # folder of all results; an experiment writes to the folder of its name below it
    # Groups and keys that all its methods share, which none of them can set.
    fixed: dict[str, Any] = field(default_factory=dict)
    # Attributes of `Takes`: time, memory, disk and downloads, which are printed before the work.
    takes: dict[str, Any] = field(default_factory=dict)

    @abstractmethod
    def __call__(self, settings: Settings) -> str:
        """Write the results; return a summary for the terminal."""


def _run_name(tau: object) -> str:
    """Return the path of a run below the folder of runs: its main choices, then the other overrides."""
    hydra, named = HydraConfig.get(), ("data", "signature", "matcher")
    tau = _decimal(tau) if _is_number(tau) else tau
    rest = variant(without_repeated_defaults(hydra.overrides.task, hydra.runtime.choices), (*named, "tau"))
    return "/".join(
        [*(str(hydra.runtime.choices[group]) for group in named), f"tau={tau}" + (f"+{rest}" if rest else "")]
    )


def keys_help() -> str:
    """Return the keys with their defaults and their help."""
    lines = []
    for name, option in KEYS.items():
        text = option.described(Door.run)
        lines.append(f"  {name}={plain(option.defaults[Door.run])}")
        lines.append(fill(text, 110, initial_indent=" " * 6, subsequent_indent=" " * 6))
    return "\n".join(lines)


def _results(*more: str) -> str:
    """Return the folder of results: the committed one for the defaults and for other values of `more` keys."""
    name = variant(changed(), (*NOT_OF_RESULTS, *more))
    return f"results/variants/{name}" if name else "results"


def _plug_in() -> None:
    """Make classes of other packages choices of their groups, by entry points such as ``spotsigs.matcher``."""
    points = entry_points()
    for group in GROUPS:
        for point in points.select(group=f"spotsigs.{group}"):
            node = {"_target_": point.value.replace(":", ".")} | _parameters(point)
            node |= {"truth": None, "unlabelled": "error"} if group == "data" else {}
            ConfigStore.instance().store(group=group, name=point.name, node=node)


def _parameters(point: EntryPoint) -> dict[str, Any]:
    """Return the fields of a plug-in's class with their defaults; none if the import fails, which `build` reports."""
    try:
        values: Any = OmegaConf.to_container(OmegaConf.structured(point.load()), enum_to_str=True)
    except Exception:  # noqa: BLE001 - another package's
        return {}
    return dict(values) | {name: f"${{{name}}}" for name in values if name in ROOT_KEYS}


def _parameters_of_choices(*, _root_: DictConfig) -> str:
    """Return the parameters of the choices with their comments, as in their files."""
    parts = []
    choices = OmegaConf.select(_root_, "hydra.runtime.choices")
    for group, choice in ((group, choices[group]) for group in GROUPS):
        path = CONF / group / f"{choice}.yaml"
        if path.is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = "\n".join(line for line in lines if not line.startswith(("_target_", "# @package")))
            parts.append(f"{group}={choice}, override with {group}.key=value:\n{textwrap.indent(kept, '  ')}\n")
    return "\n".join(parts).replace("$", "$$")  # as Hydra replaces names after one


_plug_in()
OmegaConf.register_new_resolver("run_name", _run_name)
OmegaConf.register_new_resolver("parameters", _parameters_of_choices)
OmegaConf.register_new_resolver("results", _results)
OmegaConf.register_new_resolver("keys", lambda: keys_help())


def settings(config: DictConfig, names: dict[str, str] | None = None) -> Settings:
    """Build and check every node of a composed configuration, before any work starts.

    The running job has the choices of the groups unless `names` has them. The first bad value is an
    InputError.
    """
    _require_known(config)
    for key in ("workers", "threads"):
        require(config[key] is None or config[key] >= 1, f"{key} must be at least 1, got {config[key]}")
    require(config.timing in (True, False, NOW), f"timing must be true, false or {NOW}, got {config.timing!r}")
    config.tau = checked_tau(config.tau)
    built: dict[str, Any] = {group: None if config[group] is None else build(config[group], group) for group in GROUPS}
    on_command_line = names is None  # not by another experiment
    names = names or {group: str(HydraConfig.get().runtime.choices[group]) for group in GROUPS}
    if built["experiment"] is not None and on_command_line:
        once = f"run each alone, as in `python run.py experiment={names['experiment']}`, without -m"
        require(HydraConfig.get().mode is not RunMode.MULTIRUN, f"an experiment sweeps by itself: {once}")
        require_read(built["experiment"], names["experiment"], overrides())
    band = zip(ENDS, PAPER_BAND if names["data"] == PAPER_DATA else BAND, strict=True)
    ends = {key: default if config[key] == AUTO else config[key] for key, default in band}
    for key, value in ends.items():
        require(_is_number(value), f"{key} must be a number, or {AUTO}, got {config[key]!r}")
    method = Method.of(
        text=built["text"],
        signature=built["signature"],
        matcher=built["matcher"],
        **{name: config[name] for name in OF_METHOD if name in KEYS and name not in ("tau", *ENDS)},
        idf_min=ends["idf_min"],
        idf_max=ends["idf_max"],
    )
    if method.tau is not None and method.tau != config.tau:
        matcher = f"matcher={names['matcher']} runs at the threshold {method.tau:g}, not at tau={config.tau:g}"
        raise InputError(f"{matcher}: write `tau: ${{tau}}` in its YAML file, and give tau= in place of matcher.tau=")
    return Settings(
        collection=built["data"],
        method=method,
        names=names,
        typed_tau=config.tau,
        **{group: built[group] for group in ("engine", "experiment")},
        **{key: config[key] for key in ("workers", "threads", "seed", "timing")},
    )


def checked_tau(tau: Any) -> float:
    """Return a threshold as a number, also from the text of an environment variable; raise InputError if it is none."""
    if isinstance(tau, str):
        with suppress(ValueError):
            tau = float(tau)
    require(_is_number(tau), f"tau must be a number in (0, 1], got {tau!r}")
    return as_tau(_decimal(tau))


def _decimal(number: Any) -> float:
    """Return the decimal that a number is meant to be: sums of steps, as in ``range(0.1,0.9,0.1)``, are rounded."""
    short = float(f"{number:.12g}")
    return short if 0 < abs(short - number) <= 8 * np.spacing(abs(number)) else number


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _require_known(config: DictConfig) -> None:
    known = [field.name for field in fields(Root)]
    for key in map(str, config):
        require(
            key in known or key == "hydra",
            f"{key}: the configuration has no parameter '{key}'; `python run.py --help` lists the groups and keys",
        )
    for key in OF_COMPARE:
        compares = config.experiment is not None and key in (config.experiment.get("reads") or ())
        require(config[key] is None or compares, f"{key}= is a key of experiment=compare; a run has matcher=, data=")
    for group in GROUPS[:-1]:
        require(config[group] is not None, f"{group} is missing; `python run.py --help` lists its choices")


def require_read(experiment: Any, name: str, words: Sequence[str]) -> None:
    """Refuse overrides that an experiment does not read: it would run as if they were not set."""
    require(isinstance(experiment, Experiment), f"experiment={name}: its class must be an Experiment")
    read = (*EVERY_EXPERIMENT, *experiment.reads)
    for word in words:
        key = _key(word)
        if re.split(r"[./]", key)[0] not in read:
            methods = "; its methods are in experiment.methods" if hasattr(experiment, "methods") else ""
            raise InputError(f"experiment={name} does not read {key}; it reads {', '.join(read)}{methods}")


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0].partition("@")[0]


def composed(*overrides: str) -> Settings:
    """Compose and check another configuration within a running job, from overrides as on the command line."""
    config = compose("config", list(overrides), return_hydra_config=True)
    return settings(config, {group: str(config.hydra.runtime.choices[group]) for group in GROUPS})


def method_of(choices: Mapping[str, Any], settings: Settings, *, label: str = "", **fixed: Any) -> Method:
    """Compose a method of an experiment from its groups and keys, as in ``{signature: shingles, signature.k: 5}``.

    Parameters
    ----------
    choices : mapping of str to object
        Groups, keys and parameters of the choices; what is omitted has its default, the text the experiment's default,
        and the IDF band `spotsigs.options`, whatever the collection.
    settings : Settings
        Settings of the experiment.
    label : str
        Name of the method in messages.
    **fixed : object
        Groups and keys that the experiment fixes, which the choices cannot have.

    Raises
    ------
    InputError
        If a key is unknown, or fixed with another value.
    """
    where = f"{OF_METHODS}{label}" if label else "the method"
    require(isinstance(choices, Mapping), _no_mapping(where))
    for key, value in choices.items():
        known = key.partition(".")[0] in OF_METHOD
        require(known, f"{where} has no key {key!r}; a method has {', '.join(OF_METHOD)}")
        require(
            fixed.get(key, value) == value,
            f"{where} sets {key}: {value}, and the experiment fixes {key}: {fixed.get(key)}; leave it out, "
            "or compare it by experiment=compare",
        )
    chosen = dict(zip(ENDS, BAND, strict=True)) | fixed | dict(choices)
    composed_of = composed(*(override(key, value) for key, value in chosen.items()), f"seed={settings.seed}")
    return composed_of.method if "text" in chosen else replace(composed_of.method, text=settings.method.text)


def methods_of(methods: Mapping[str, Mapping[str, Any]], settings: Settings, **fixed: Any) -> dict[str, Method]:
    """Compose the methods of an experiment by label, see `method_of`."""
    return {label: method_of(choices, settings, label=label, **fixed) for label, choices in methods.items()}


def override(key: str, value: Any) -> str:
    """Return a key and its value as an override of the command line."""
    return f"{key}={plain(value)}"


def overrides() -> list[str]:
    """Return the overrides on the command line of the running job."""
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def changed() -> list[str]:
    """Return the overrides on the command line that repeat no default."""
    return (
        without_repeated_defaults(overrides(), HydraConfig.get().runtime.choices) if HydraConfig.initialized() else []
    )


def is_folder_chosen() -> bool:
    """Return whether the user chose the folder of the running job, which may then replace other results."""
    return any(word.startswith(("hydra.run.", "hydra.sweep.")) for word in HydraConfig.get().overrides.hydra)


def files(config: DictConfig, chosen: Settings) -> dict[str, str]:
    """Return the files that record the configuration of the running job, by name."""
    hydra, band = HydraConfig.get(), chosen.method.idf_filter
    resolved = OmegaConf.merge(config, {"idf_min": band.idf_min, "idf_max": band.idf_max})
    return {
        "config.yaml": OmegaConf.to_yaml(resolved),
        "overrides.yaml": OmegaConf.to_yaml(hydra.overrides.task),
        "hydra.yaml": OmegaConf.to_yaml(HydraConfig.instance().cfg),  # its node ``hydra`` alone
    }


def build(node: DictConfig, group: str) -> Any:
    """Merge a node into its target's own dataclass, which is its schema, and return the object.

    A collection has the truth of the file that ``data.truth`` names. An unknown key, a wrong type and a value out of
    range are an InputError.
    """
    container: Any = OmegaConf.to_container(node, resolve=True)
    values = dict(container)
    target, truth = values.pop("_target_", None), values.pop("truth", None) if group == "data" else None
    unlabelled = str(values.pop("unlabelled", "error")) if group == "data" else "error"
    cls = _target(target, group)
    known = [field.name for field in fields(cls)]
    typed = {_key(word) for word in overrides()}
    if f"{group}._target_" in typed:  # the other values are of the class that the user replaced
        values = {key: value for key, value in values.items() if key in known or f"{group}.{key}" in typed}
    for key in values:
        require(
            key in known,
            f"{group}.{key}: {cls.__name__} has no such parameter; it has " + (", ".join(known) or "none"),
        )
    try:
        built = make(cls, values)
    except MissingMandatoryValue as error:
        key = f"{group}.{error.full_key}"
        raise InputError(f"{key} is missing; give it, as in `python run.py {group}=... {key}=...`") from error
    except OmegaConfBaseException as error:
        key = f"{group}.{error.full_key}" if error.full_key else group
        fault = _no_mapping(key) if key.startswith(OF_METHODS) else f"{key}: {_first_line(error)}"
        raise InputError(fault) from error
    except InputError as error:
        raise InputError(f"{group}: {error}") from error
    if truth is None and unlabelled == "error":
        return built
    return WithTruth(collection=built, file="" if truth is None else str(truth), unlabelled=unlabelled)


def _target(name: object, group: str) -> Any:
    """Return the class of a node, of any package."""
    require(
        isinstance(name, str) and "." in name,
        f"{group}: _target_ must name a class, as in mypackage.Mine; got {name!r}",
    )
    try:
        cls = get_class(str(name))
    except Exception as error:
        cause = error.__cause__ or error
        raise InputError(f"{group}: {name} cannot be imported: {type(cause).__name__}: {_first_line(cause)}") from error
    require(is_dataclass(cls), f"{group}: {name} must be a dataclass: its fields are its parameters")
    return cls


def sentence(error: Exception) -> str:
    """Return one line for any error of a run: the fault, where it is, and the allowed values."""
    return f"error: {printable(_explain(error))}"


def _explain(error: Exception) -> str:
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options is not None:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        near = _nearest(choice, error.options)
        if group in ("hydra/launcher", "hydra/sweeper"):
            near = f"; `pip install hydra-{choice}-{group.removeprefix('hydra/')}` may add it"
        return f"{group}={choice} is not known{near}; choose one of: {', '.join(error.options)}"
    if isinstance(error, HydraException):
        return _explain_override(error)
    if isinstance(error, OmegaConfBaseException) and (left_out := [w for w in sys.argv[1:] if w.startswith("~")]):
        return f"{left_out[0]} leaves out what every run needs; give another choice, as in {left_out[0][1:]}=..."
    if isinstance(error, OmegaConfBaseException):
        return f"{error.full_key}: {_first_line(error)}" if error.full_key else _first_line(error)
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ValueError) and "Config group override must be" in str(error):
        return "a group takes the name of one of its choices; `python run.py --help` lists them"
    if isinstance(error, OSError) and error.strerror:
        path = failed_path(error) or "the system"
        if error.errno in (EROFS, ENOSPC, EDQUOT):
            return f"{path} cannot be written: {reason(error)}; give another path"
        advice = "; give another path" if error.errno in (EACCES, ENOTDIR, EEXIST, ENAMETOOLONG) else ""
        return f"{path}: {reason(error)}{advice}"
    return f"unexpected {type(error).__name__}: {_first_line(error)} (debug=true shows where)"


def _no_mapping(key: str) -> str:
    """Return the fault of a method that is no mapping, with the form that the command line takes."""
    return f"{key} must be a mapping, as in '+{key}={{matcher: lsh, tau: 0.4}}'"


def _explain_override(error: HydraException) -> str:
    text = str(error)
    if isinstance(error, OverrideParseException):
        typed = _key(str(error.override))
        if typed.startswith(OF_METHODS):
            return _no_mapping(typed)
        return (
            f"{error.override!r} cannot be read as key=value: leave no blanks around =, and quote a value that "
            "contains signs such as , or =, as in \"data.path='a,b'\""
        )
    ambiguous = re.match(r"Ambiguous value for argument '(.*)'", text)
    if ambiguous:
        return (
            f"{ambiguous[1]}: a comma lists several values; give one (decimals have a point), run each by -m, or quote "
            "a text that contains one, as in \"data.path='a,b'\""
        )
    key = re.search(r"Could not override '([^']+)'", text)
    if key:
        parent, _, name = key[1].rpartition(".")
        if not parent and (there := elsewhere(name, Door.run)):
            return f"{name} is no key of run.py: {there}"
        known = f"'{name}' here{_set_there(error, name, parent)}; `python run.py --help` lists the groups and keys"
        return f"{key[1]}: {parent or 'the configuration'} has no parameter {known}"
    composing = re.match(r"In '[^']+': \w+ raised while composing config:\s*(.*)", text)
    if composing:
        return composing[1]
    merging = re.search(r"Error merging override (\S+)", text)
    if merging and error.__cause__ is not None:
        return f"{merging[1]}: {_first_line(error.__cause__)}"
    return _first_line(error)


def _set_there(error: HydraException, name: str, parent: str) -> str:
    """Return the key that a misspelt one resembles, or the keys of its node."""
    node: Any = getattr(error.__cause__, "parent_node", None)
    known = isinstance(node, DictConfig) and "." not in parent  # deeper, the node is the last one that exists
    keys = [str(key) for key in node if key not in ("_target_", "hydra")] if known else []
    return _nearest(name, keys) or (f", but {', '.join(keys)}" if keys else "")


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


_MEANT = {"minhash": "lsh", "json": "jsonl", "ndjson": "jsonl", "tsv": "csv", "html": "folder", "wet": "warc"}
"""Common names of choices."""


def _nearest(choice: str, options: Sequence[str]) -> str:
    near = [_MEANT[choice]] if _MEANT.get(choice) in options else get_close_matches(choice, options, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
