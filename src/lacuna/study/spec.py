"""A study as a TOML file: checked whole, then expanded into runs whose names follow from what they are."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lacuna import display
from lacuna.kernels.counts import MAX_COUNT
from lacuna.mdp.tabular import TabularMDP
from lacuna.methods.settings import SETTINGS, Settings, settings_of
from lacuna.methods.table import METHODS, NAMED, YARDSTICKS
from lacuna.missingness import parse
from lacuna.quantities import counted
from lacuna.running.knowledge import check_horizon
from lacuna.validation import nearest, shown
from lacuna.version import RESULTS_VERSION
from lacuna.worlds.registry import as_tuples, find_world, make_world

_MOST_SETTINGS, _MOST_RUNS = 100_000, 10_000_000


class StudyError(ValueError):
    """Everything that is wrong with a study file, one sentence a line."""


_listed = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
Listed = Annotated[list[Any], _listed, Field(min_length=1)]
"""One value, or a list of values to try."""
Name = Annotated[str, Field(pattern=r"^[\w.+,()-]([\w.+,() -]*[\w.+,()-])?$", max_length=100)]


class MethodSpec(BaseModel):
    """A method by its name, with values for any of its settings, which come before those of the grid."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Listed] = Field(init=False)

    name: str

    @property
    def choices(self) -> Mapping[str, list[Any]]:
        """The values to try of each setting given."""
        return self.model_extra or {}


class WorldSpec(BaseModel):
    """A world by its name, with any of its parameters."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    name: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters given; TOML's lists are tuples here."""
        return {key: as_tuples(value) for key, value in (self.model_extra or {}).items()}


class StudySpec(BaseModel):
    """The keys of a study file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: Name
    """A name, for people."""
    steps: int = Field(ge=1, le=MAX_COUNT)
    """Length of every run."""
    trials: int = Field(ge=1, le=_MOST_RUNS)
    """How many trials every setting is run for; the number of a trial is its seed."""
    first_trial: int = Field(default=0, ge=0, le=2**31)
    """Number of the first trial."""
    missingness: list[str] = Field(min_length=1)
    """A list of mechanisms, as on the command line."""
    worlds: list[WorldSpec] = Field(min_length=1)
    """A list of tables: ``name``, and any parameter of that world, e.g. ``{name = "taxi", is_rainy = true}``."""
    methods: list[MethodSpec] = Field(min_length=1)
    """A list of tables: ``name``, and values for any setting of that method."""
    grid: dict[str, Listed] = {}
    """Values for the settings of all methods."""
    curve_points: int = Field(default=0, ge=0, le=10_000)
    """Note the running sums at this many steps, evenly spaced."""
    curve_times: list[int] = []
    """Note the running sums at these steps too."""
    first_observed: bool = True
    """Whether the first state of every episode is fully observed."""


@dataclass(frozen=True)
class RunSpec:
    """One run: everything that fixes its figures, and nothing else."""

    world: str
    parameters: tuple[tuple[str, Any], ...]
    missingness: str
    settings: Settings
    steps: int
    trial: int
    curve: tuple[int, ...] = ()
    first_observed: bool = True

    @cached_property
    def id(self) -> str:
        """A name derived from the content: the same run has the same name in every study.

        Only what differs from a default enters it, so a parameter that is added later renames nothing.
        """
        content: dict[str, Any] = {
            "results": RESULTS_VERSION,
            "world": self.world,
            "parameters": dict(self.parameters),
            "missingness": self.missingness,
            "settings": self._unusual_settings(),
            "method": self.settings.method,
            "steps": self.steps,
            "trial": self.trial,
        }
        if self.curve:
            content["curve"] = self.curve
        if not self.first_observed:
            content["first_observed"] = False
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    def _unusual_settings(self) -> dict[str, Any]:
        # The method is beside the settings too; names of runs must not change because it would do once.
        method = self.settings.method
        return self.settings.unusual() | ({"method": method} if method != Settings().method else {})

    def to_json(self) -> dict[str, Any]:
        """The run as plain data, to send to another process."""
        return asdict(self) | {"parameters": dict(self.parameters)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Build the run that `to_json` described."""
        settings = Settings(**data["settings"])
        return cls(
            **{**data, "parameters": _frozen(data["parameters"]), "settings": settings, "curve": tuple(data["curve"])}
        )


@dataclass(frozen=True, repr=False)
class Study:
    """A checked study: its worlds and mechanisms, its settings, and how often and how long each is run."""

    spec: StudySpec
    problems: tuple[tuple[str, tuple[tuple[str, Any], ...], str], ...]
    settings: tuple[Settings, ...]

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """Read and check a study file; a wrong one gives a sentence for everything that is wrong."""
        try:
            # Some editors put a mark before the first character, which TOML does not know.
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise StudyError(f"{path} cannot be read: {error}") from error
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, name: str = "study") -> Study:
        """Check a study given as text.

        Examples
        --------
        >>> study = Study.parse('''
        ... name = "first"
        ... steps = 1000
        ... trials = 2
        ... missingness = ["mcar:0.2", "mcar:0.4"]
        ... worlds = [{name = "lake"}]
        ... methods = [{name = "last-observed"}, {name = "mi-synthetic", K = [1, 5]}]
        ... ''')
        >>> len(study)
        12
        """
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise StudyError(f"{name} is not valid TOML: {error}") from error
        return cls.from_data(data, name)

    @classmethod
    def from_data(cls, data: Mapping[str, Any], name: str = "study") -> Study:
        """Check a study given as plain data."""
        wrong = _wrong_choices(data) if isinstance(data, dict) else []
        try:
            spec = StudySpec.model_validate(data)
        except ValidationError as error:
            wrong = [*_sentences(error), *wrong]
        else:
            problems, settings = _expand(spec, wrong)
        if wrong:
            raise StudyError("\n".join(f"{name}: {line}" for line in dict.fromkeys(wrong)))
        return cls(spec, problems, settings)

    @cached_property
    def curve(self) -> tuple[int, ...]:
        """Steps at which the running sums are noted."""
        n, steps = self.spec.curve_points, self.spec.steps
        return tuple(sorted({*self.spec.curve_times, *(max(1, steps * (i + 1) // n) for i in range(n))}))

    def __repr__(self) -> str:
        return f"Study({self.spec.name!r}, {counted(len(self), 'run')})"

    def _repr_html_(self) -> str:
        spec = self.spec
        rows = [(world, ", ".join(f"{key}={value}" for key, value in parameters), missingness)
                for world, parameters, missingness in self.problems]  # fmt: skip
        about = [("runs", len(self)), ("settings", len(self.settings)), ("trials", spec.trials), ("steps", spec.steps)]
        methods = ", ".join(dict.fromkeys(method.name for method in spec.methods))
        return display.card(
            f"Study: {spec.name}", display.facts(about), display.facts([("methods", methods)]),
            display.table(["world", "parameters", "missingness"], rows),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.problems) * len(self.settings) * self.spec.trials

    def runs(self) -> Iterator[RunSpec]:
        """All runs, one at a time."""
        spec = self.spec
        trials = range(spec.first_trial, spec.first_trial + spec.trials)
        # By trial first: a study that was stopped half-way has some trials of every setting, and can be looked at.
        for trial, (world, parameters, missingness), settings in product(trials, self.problems, self.settings):
            yield RunSpec(world, parameters, missingness, settings, spec.steps, trial, self.curve, spec.first_observed)

    @cached_property
    def id(self) -> str:
        """A name derived from the content of the file."""
        content = json.dumps(self.spec.model_dump(exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def _expand(spec: StudySpec, wrong: list[str]) -> tuple[tuple[Any, ...], tuple[Settings, ...]]:
    """Worlds x missingness, and methods x choices; adds a sentence for everything that cannot be to what is wrong."""
    choices_are_fine = not wrong
    problems = []
    worlds = []
    if len(spec.worlds) * len(spec.missingness) > _MOST_SETTINGS:
        wrong.append(f"worlds x missingness are more than {_MOST_SETTINGS}")
        return (), ()
    for i, world in enumerate(spec.worlds):
        try:
            mdp = make_world(world.name, **world.parameters)
        except (TypeError, ValueError) as error:
            wrong.append(f"worlds[{i}] is {shown({'name': world.name, **world.parameters})}: {error}")
            continue
        worlds.append(mdp)
        parameters = _frozen(_unusual(world.name, world.parameters))
        for j, text in enumerate(spec.missingness):
            try:
                problems.append((world.name, parameters, parse(text, mdp).name))
            except (TypeError, ValueError) as error:
                wrong.append(f"missingness[{j}] is {shown(text)} in worlds[{i}]: {error}")
    settings: list[Settings] = []
    for i in range(len(spec.methods) if choices_are_fine else 0):
        settings += _settings_of(i, spec, worlds, wrong)
    if (n := len(set(problems)) * len(set(settings)) * spec.trials) > _MOST_RUNS:
        wrong.append(f"there would be {n} runs; there must be at most {_MOST_RUNS} in a study: split it by first_trial")
    if spec.curve_points > spec.steps:
        wrong.append(f"curve_points is {spec.curve_points}; there cannot be more than steps, {spec.steps}")
    wrong += [
        f"curve_times[{i}] is {shown(t)}; it must be a step between 1 and {spec.steps}"
        for i, t in enumerate(spec.curve_times)
        if not 1 <= t <= spec.steps
    ]
    return tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(settings))


def _wrong_choices(data: Mapping[str, Any]) -> list[str]:
    """A sentence for every key of the grid and the methods that is no setting, and every value that none takes."""
    methods = data.get("methods")
    tables: list[tuple[tuple[int | str, ...], Any]] = [(("grid",), data.get("grid"))]
    tables += [(("methods", i), table) for i, table in enumerate(methods if isinstance(methods, list) else [])]
    wrong = []
    for where, table in tables:
        for key, given in table.items() if isinstance(table, dict) else ():
            if key == "name" and where != ("grid",):
                continue
            place = _place((*where, key))
            if key not in SETTINGS:
                known = SETTINGS if where == ("grid",) else ("name", *SETTINGS)
                wrong.append(f"{place} is not a key{nearest(key, known)}; there are {', '.join(known)}")
                continue
            values = given if isinstance(given, list) else [given]
            for i, value in enumerate(values):
                try:
                    SETTINGS[key].checked(f"{place}[{i}]" if len(values) > 1 else place, value)
                except ValueError as error:
                    wrong.append(str(error))
    return wrong


def _settings_of(i: int, spec: StudySpec, worlds: list[TabularMDP], wrong: list[str]) -> list[Settings]:
    """The settings of method `i` of a study, with a sentence for everything that cannot be."""
    chosen = spec.methods[i]
    if chosen.name not in NAMED:
        wrong.append(f"methods[{i}].name is {shown(chosen.name)}{nearest(chosen.name, NAMED)}; it must be one of "
                     f"{', '.join(METHODS)}, or a yardstick: {', '.join(YARDSTICKS)}")  # fmt: skip
        return []
    mine = settings_of(NAMED[chosen.name])
    tried = {key: values for key, values in spec.grid.items() if key in mine} | dict(chosen.choices)
    axes = {key: tried[key] for key in SETTINGS if key in tried}
    if (n := prod(map(len, axes.values()))) > _MOST_SETTINGS:
        wrong.append(f"methods[{i}] ({chosen.name}) has {n} settings; there must be at most {_MOST_SETTINGS}")
        return []
    found = []
    for values in product(*axes.values()):
        try:
            found.append(Settings(chosen.name, **dict(zip(axes, values, strict=True))))
            for mdp in worlds:
                check_horizon(mdp, found[-1])
        except (TypeError, ValueError) as error:
            wrong.append(f"methods[{i}] ({chosen.name}): {error}")
    return found


def _unusual(world: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that differ from their default."""
    declared = find_world(world)
    return {key: value for key, value in declared.typed(parameters).items() if value != declared.parameters[key]}


def _frozen(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, as_tuples(value)) for key, value in parameters.items()))


_TABLES = ("grid", "methods", "worlds")


def _sentences(error: ValidationError) -> list[str]:
    """Every complaint as: where, what was found, what was expected."""
    lines: dict[str, None] = {}
    for item in error.errors():
        parts = item["loc"]
        place = _place(parts)
        if item["type"] == "extra_forbidden":
            known = list(StudySpec.model_fields)
            line = f"{place} is not a key{nearest(str(parts[-1]), known)}; there are {', '.join(known)}"
        elif item["type"] == "missing":
            line = f"{place} is missing; it is needed"
        else:
            line = f"{place} is {shown(item['input'])}; it must be {_wanted(item['type'], item.get('ctx', {}), place)}"
        lines[line] = None
    return list(lines)


_WANTED = {
    "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "string_type": "a text in quotes", "bool_type": "true or false",
    "string_pattern_mismatch": "made of letters, digits, spaces inside, and any of . , + - _ ( )",
    "too_short": "a list of at least one value", "string_too_long": "shorter: at most 100 characters",
    "model_type": "a table of keys and values, e.g. {name = …}", "dict_type": "a table of keys and values",
}  # fmt: skip


def _wanted(kind: str, bound: Mapping[str, Any], place: str) -> str:
    """What pydantic expected, in our words."""
    if kind == "greater_than_equal":
        return f"{bound['ge']} or larger"
    if kind == "less_than_equal":
        return f"at most {bound['le']}"
    if kind == "list_type":
        return f"a list: [[{place}]], or {place} = [{{name = …}}, …]" if place in _TABLES else "a list"
    return _WANTED[kind]


def _place(parts: tuple[int | str, ...]) -> str:
    place = ""
    for part in parts:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += ("." if place else "") + (part if part.isidentifier() and len(part) < 60 else shown(part))
    return place or "the study"
