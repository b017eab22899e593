"""The choices of each group of the configuration: their names, their values, and the choice that a part is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from experiments.run_folders import dotted
from spotsigs.method import changed_parameters
from spotsigs.options import Door, options_of

CONF = Path(__file__).parents[1] / "conf"
"""The configuration of the checkout."""

GROUPS = ("data", "text", "signature", "matcher", "engine", "experiment")


def known_choices(group: str) -> list[str]:
    """Return the names of all choices of a group: files of the checkout and of the user, and plug-ins."""
    from hydra.core.config_store import ConfigStore
    from hydra.core.hydra_config import HydraConfig

    sources = HydraConfig.get().runtime.config_sources if HydraConfig.initialized() else ()
    folders = {CONF, *(Path(source.path) for source in sources if source.schema == "file")}
    files = {path.stem for folder in folders for path in (folder / group).glob("*.yaml")}
    store: Mapping[str, Any] = ConfigStore.instance().repo
    return sorted(files | {name.removesuffix(".yaml") for name in store.get(group, ())})


@cache
def default_choices(experiment: str) -> dict[str, str]:
    """Return the choice in each group without overrides, of runs of an experiment or ``None``."""
    choices: dict[str, str] = {}
    for path in (CONF / "config.yaml", CONF / "experiment" / f"{experiment}.yaml"):
        entries = yaml.safe_load(path.read_text(encoding="utf-8")).get("defaults", ()) if path.is_file() else ()
        for entry in (entry for entry in entries if isinstance(entry, Mapping)):
            choices |= {str(key).removeprefix("override /"): str(value).lower() for key, value in entry.items()}
    return choices


def without_repeated_defaults(words: Iterable[str], choices: Mapping[str, str]) -> list[str]:
    """Return the overrides without those that repeat a default, as ``workers=8`` does.

    Parameters
    ----------
    words : iterable of str
        Overrides of the command line.
    choices : mapping of str to str
        The choice in each group.
    """

    def repeats(word: str) -> bool:
        key, _, value = word.partition("=")
        group = key.partition(".")[0]
        if key in GROUPS:
            return key != "experiment" and default_choices(str(choices.get("experiment"))).get(key) == value
        if group == key:
            values = {name: option.defaults[Door.run] for name, option in options_of(Door.run).items()}
        else:
            values = dict(dotted(_values(group, str(choices.get(group)))))
            key = key if group == "experiment" else key.removeprefix(f"{group}.")
        try:
            return key in values and values[key] == yaml.safe_load(value)
        except yaml.YAMLError:
            return False

    return [word for word in words if not repeats(word)]


def make(cls: Any, values: Mapping[str, Any]) -> Any:
    """Return an object of a dataclass, which is the schema of its values."""
    schema = OmegaConf.structured(cls, flags={"readonly": False})
    return OmegaConf.to_object(OmegaConf.merge(schema, values))


@dataclass(frozen=True)
class ChoiceNames:
    """Writes the parts of a method as ``run.py`` reads them: the name of a choice, and the parameters that differ.

    It is a `spotsigs.method.Spelling`.
    """

    preferred: Mapping[str, str] = field(default_factory=dict)  # the user's choice in each group

    def __call__(self, group: str, part: Any) -> tuple[str, dict[str, Any]]:
        """Return the name of a part, and its parameters by key."""
        name = self.preferred.get(group) or _nearest_choice(group, part)
        if not is_dataclass(part):
            return name, {}
        given = _values(group, name)
        target = f"{type(part).__module__}.{type(part).__qualname__}"
        words = {f"{group}._target_": target} if given.get("_target_", target) != target else {}
        cls: Any = type(part)
        for key, value in changed_parameters(part, _usual_part(group, name, cls)).items():
            words[f"{group}.{key}" if key in given else f"++{group}.{key}"] = value
        return name, words


@cache
def _values(group: str, choice: str) -> dict[str, Any]:
    """Return the values of a choice of the checkout, without references to other keys; none of other choices."""
    path = CONF / group / f"{choice}.yaml"
    loaded = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {key: value for key, value in loaded.items() if not str(value).startswith("${")}


@cache
def _usual_part(group: str, choice: str, cls: Any) -> Any:
    """Return the part of a class with the values of a choice, as far as the class has them."""
    known = {item.name for item in fields(cls)}
    return make(cls, {key: value for key, value in _values(group, choice).items() if key in known})


def _nearest_choice(group: str, part: Any) -> str:
    """Return the choice of a part's class that has most of its parameters; if there is none, the group's default."""
    cls: Any = type(part)
    target = f"{cls.__module__}.{cls.__qualname__}"
    names = [path.stem for path in sorted((CONF / group).glob("*.yaml"))]
    same = [name for name in names if _values(group, name).get("_target_") == target]
    differences = {name: len(changed_parameters(part, _usual_part(group, name, cls))) for name in same}
    return min(differences, key=differences.__getitem__, default=default_choices("None")[group])
