"""A study as a TOML file: checked whole, then expanded into runs whose names follow from what they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lacuna import display
from lacuna.agent.methods import METHODS, NAMED, YARDSTICKS
from lacuna.agent.own_method import AnyMethod, OwnMethod
from lacuna.agent.settings import SETTINGS, Settings, settings_of
from lacuna.complaints import Place, path_of, sentences
from lacuna.kernels.counts import MAX_COUNT
from lacuna.missingness.texts import source_of
from lacuna.parameters import Frozen, as_tuples, frozen, write_call
from lacuna.quantities import counted
from lacuna.references import METHOD_GROUP, Sources, entry_point_names, resolve, sources_of
from lacuna.run.knowledge import check_horizon
from lacuna.run.problems import AnyProblem, Problem, problem_in
from lacuna.study.runs import Expansion, RunSpec, method_as_note, no_names
from lacuna.toml import parse_toml
from lacuna.trust import only_looking
from lacuna.validation import nearest, shown
from lacuna.worlds.registry import find_world

_MOST_SETTINGS, _MOST_RUNS = 100_000, 10_000_000


class StudyError(ValueError):
    """All faults of a study file, one sentence per line."""


_listed = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
Listed = Annotated[list[Any], _listed, Field(min_length=1)]
"""One value, or a list of values to try."""
Name = Annotated[str, Field(pattern=r"^[\w.+,()-]([\w.+,() -]*[\w.+,()-])?$", max_length=100)]


def _by_name(data: Any) -> Any:
    """Rename the key ``use`` (a reference) or ``env`` (a Gymnasium id) of a table to ``name``."""
    words = [word for word in ("use", "env") if isinstance(data, dict) and word in data]
    if len(words) != 1 or "name" in data:
        return data
    return {"name": data[words[0]]} | {key: value for key, value in data.items() if key != words[0]}


def _as_text(data: Any) -> Any:
    """Convert a mechanism written as a table to the text that the command line takes."""
    table = _by_name(data)
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        return data
    try:
        return write_call(table["name"], {key: value for key, value in table.items() if key != "name"})
    except ValueError:
        return data


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


Named = BeforeValidator(_by_name)


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
    missingness: list[Annotated[str, BeforeValidator(_as_text)]] = Field(min_length=1)
    """A list of mechanisms, as on the command line; one of your own may be a table: ``use``, and its parameters."""
    worlds: list[Annotated[WorldSpec, Named]] = Field(min_length=1)
    """A list of tables: ``name``, and any parameter of that world, e.g. ``{name = "taxi", is_rainy = true}``.

    ``env`` instead of ``name`` is a Gymnasium id, and ``use`` a reference to a world or environment of your own.
    """
    methods: list[Annotated[MethodSpec, Named]] = Field(min_length=1)
    """A list of tables: ``name``, and values for any setting of that method.

    ``use`` instead of ``name`` is a reference to a method of your own, with values for any of its parameters.
    """
    grid: dict[str, Listed] = {}
    """Values for the settings of all methods, except those of your own."""
    curve_points: int = Field(default=0, ge=0, le=10_000)
    """Note the running sums at this many steps, evenly spaced."""
    curve_times: list[int] = []
    """Note the running sums at these steps too."""
    first_observed: bool = True
    """Whether the first state of every episode is fully observed."""


@dataclass(frozen=True, repr=False)
class Study:
    """A checked study: its worlds and mechanisms, its settings, and how often and how long each is run."""

    spec: StudySpec
    problems: tuple[tuple[str, Frozen, str], ...]
    settings: tuple[AnyMethod, ...]
    sources: Mapping[str, Sources] = field(default_factory=dict)
    """By the name of each world, mechanism and method that does not come with lacuna: its reference, with a digest."""

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """Read and check a study file; the error has a sentence for every fault."""
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
            data = parse_toml(text)
        except ValueError as error:
            raise StudyError(f"{name} is not valid TOML: {error}") from error
        return cls.from_data(data, name)

    @classmethod
    def from_data(cls, data: Mapping[str, Any], name: str = "study") -> Study:
        """Check a study given as plain data."""
        wrong = _wrong_choices(data) if isinstance(data, dict) else []
        try:
            spec = StudySpec.model_validate(data)
        except ValidationError as error:
            wrong = [*sentences(error, _place_of, lambda _: list(StudySpec.model_fields), _own_words), *wrong]
        else:
            problems, settings, sources = _expand(spec, wrong)
        if wrong:
            raise StudyError("\n".join(f"{name}: {line}" for line in dict.fromkeys(wrong)))
        return cls(spec, problems, settings, sources)

    def to_note(self) -> dict[str, Any]:
        """The study as plain data, with what it stands for, which a reader would have to import parts to find out."""
        expanded = {
            "problems": [[world, dict(parameters), missingness] for world, parameters, missingness in self.problems],
            "settings": [method_as_note(method) for method in self.settings],
            "sources": {name: dict(found) for name, found in self.sources.items()},
        }
        return {"study": self.spec.model_dump(exclude_defaults=True), "expanded": expanded}

    @classmethod
    def from_note(cls, note: Mapping[str, Any], name: str) -> Study:
        """Return the study that `to_note` described. Nothing is imported: a folder of results must not run code.

        Older notes do not say what a study stands for. It is found out if all parts of the study come with lacuna.
        """
        with only_looking():
            if "expanded" not in note:
                return cls.from_data(note["study"], name)
            held = Expansion.model_validate(note["expanded"])
            found = cls(
                StudySpec.model_validate(note["study"]),
                tuple((world, frozen(parameters), missingness) for world, parameters, missingness in held.problems),
                held.methods(),
                {part: tuple(sorted(found.items())) for part, found in held.sources.items()},
            )
        for sentence in no_names(found.problems, found.settings, found.sources):
            raise StudyError(f"{name}: {sentence}")
        if (n := len(found.problems) * len(found.settings) * found.spec.trials) > _MOST_RUNS:
            raise StudyError(f"{name}: it would have {n} runs; there are at most {_MOST_RUNS} in a study")
        return found

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
            yield RunSpec(
                world, parameters, missingness, settings, spec.steps, trial, self.curve, spec.first_observed,
                self.sources_of(world, missingness, settings.method) if self.sources else (),
            )  # fmt: skip

    def sources_of(self, *names: str) -> Sources:
        """The sources of a run, from the names of its world, its mechanism and its method."""
        return tuple(sorted({one for name in names for one in self.sources.get(name, ())}))

    @cached_property
    def id(self) -> str:
        """A name derived from the content of the file."""
        content = json.dumps(self.spec.model_dump(exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


_Expanded = tuple[tuple[tuple[str, Frozen, str], ...], tuple[AnyMethod, ...], dict[str, Sources]]


def _place_of(parts: Place) -> str:
    return path_of(parts) or "the study"


def _own_words(kind: str, parts: Place) -> str | None:
    """What is expected where an example helps."""
    if kind == "model_type":
        return "a table of keys and values, e.g. {name = …}"
    place = path_of(parts)
    if kind == "list_type" and place in ("methods", "worlds"):
        return f"a list: [[{place}]], or {place} = [{{name = …}}, …]"
    return None


def _expand(spec: StudySpec, wrong: list[str]) -> _Expanded:
    """Worlds x missingness, and methods x choices; adds a sentence for everything that cannot be to what is wrong."""
    choices_are_fine = not wrong
    if len(spec.worlds) * len(spec.missingness) > _MOST_SETTINGS:
        wrong.append(f"worlds x missingness are more than {_MOST_SETTINGS}")
        return (), (), {}
    problems, worlds, outside, found = [], [], {}, {}
    for i, world in enumerate(spec.worlds):
        try:
            declared = find_world(world.name)
            made = declared.open(**world.parameters)
            parameters = frozen(declared.unusual(world.parameters))
        except (TypeError, ValueError) as error:
            wrong.append(f"worlds[{i}] is {shown({'name': world.name, **world.parameters})}: {error}")
            continue
        found[declared.name] = declared.sources
        fitting = []
        for j, text in enumerate(spec.missingness):
            try:
                fitting.append(problem_in(declared, made, text, world.parameters))
            except (TypeError, ValueError) as error:
                wrong.append(f"missingness[{j}] is {shown(text)} in worlds[{i}]: {error}")
                continue
            name = fitting[-1].missingness
            problems.append((declared.name, parameters, name))
            outside[name] = source_of(name) or ""
        worlds += fitting[:1]
    settings: list[AnyMethod] = []
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
    outside |= {method.method: method.use for method in settings if isinstance(method, OwnMethod)}
    found |= {name: sources_of([reference]) for name, reference in outside.items() if reference}
    sources = {name: digests for name, digests in found.items() if digests}
    wrong += no_names(problems, settings, sources)
    return tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(settings)), sources


def _wrong_choices(data: Mapping[str, Any]) -> list[str]:
    """A sentence for every key of the grid and the methods that is not a setting, and for every invalid value."""
    methods = data.get("methods")
    tables: list[tuple[tuple[int | str, ...], Any]] = [(("grid",), data.get("grid"))]
    tables += [(("methods", i), table) for i, table in enumerate(methods if isinstance(methods, list) else [])]
    wrong = []
    for where, table in tables:
        if not isinstance(table, dict) or (where != ("grid",) and _is_own(_by_name(table).get("name"))):
            continue
        for key, given in (table if where == ("grid",) else _by_name(table)).items():
            if key == "name" and where != ("grid",):
                continue
            place = _place_of((*where, key))
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


def _is_own(name: Any) -> bool:
    return isinstance(name, str) and name not in NAMED and resolve(METHOD_GROUP, name) is not None


def _settings_of(i: int, spec: StudySpec, worlds: list[AnyProblem], wrong: list[str]) -> list[AnyMethod]:
    """The settings of method `i` of a study, with a sentence for everything that cannot be."""
    chosen = spec.methods[i]
    own = _is_own(chosen.name)
    if chosen.name not in NAMED and not own:
        names = [*METHODS, *entry_point_names(METHOD_GROUP)]
        wrong.append(f"methods[{i}].name is {shown(chosen.name)}{nearest(chosen.name, [*names, *YARDSTICKS])}; it must "
                     f"be one of {', '.join(names)}, or a yardstick: {', '.join(YARDSTICKS)}")  # fmt: skip
        return []
    axes = dict(chosen.choices)
    if not own:
        mine = settings_of(NAMED[chosen.name])
        tried = {key: values for key, values in spec.grid.items() if key in mine} | axes
        axes = {key: tried[key] for key in SETTINGS if key in tried}
    if (n := prod(map(len, axes.values()))) > _MOST_SETTINGS:
        wrong.append(f"methods[{i}] ({chosen.name}) has {n} settings; there must be at most {_MOST_SETTINGS}")
        return []
    found: list[AnyMethod] = []
    for values in product(*axes.values()):
        try:
            found.append(_method(chosen.name, dict(zip(axes, values, strict=True)), worlds))
        except (TypeError, ValueError) as error:
            wrong.append(f"methods[{i}] ({chosen.name}): {error}")
    return found


def _method(name: str, values: dict[str, Any], worlds: list[AnyProblem]) -> AnyMethod:
    """A method with its settings, if it can act in the worlds; one of your own is tried in the first of them."""
    if name not in NAMED:
        own = OwnMethod.named(name, values)
        for problem in worlds[:1]:
            own.make(problem.space, problem.n_actions, seed=0)
        return own
    settings = Settings(name, **values)
    for problem in worlds:
        if isinstance(problem, Problem):
            check_horizon(problem.mdp, settings)
        elif name in YARDSTICKS:
            raise ValueError(f"a yardstick needs a world given as arrays, and {problem.world} is an environment")
    return settings
