"""Write the reference pages from the code: interfaces from docstrings, tables from declarations.

``python reference/generate.py`` writes ``docs/reference/``, the list of files in ``docs/architecture.md``, the examples
that other pages print, the picture of the idea, and the verdicts of the full study that the package keeps. All of it is
committed, so that every link works where the repository is read; a test fails when it is not current.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import typer.main
from interfaces import anchor, doc_of, entry, field_docs, inline, items, link, public_names, sections
from pictures import idea_picture

from lacuna.agent.methods import METHODS, NAMED, YARDSTICKS, Method
from lacuna.agent.settings import DEFAULT, SETTINGS, Setting, Settings, settings_of
from lacuna.cli.installed_commands import PACKAGE_OF
from lacuna.cli.main import app
from lacuna.missingness import MECHANISMS
from lacuna.study.spec import StudySpec
from lacuna.study.store import SCHEMA
from lacuna.worlds.registry import WORLDS
from lacuna_paper.frontier.deep_learners import extract as deep_rows
from lacuna_paper.story.page import picture, written
from lacuna_paper.story.results import extract
from lacuna_paper.verdicts import in_brief

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "lacuna"
OF_PAPER = ROOT / "paper" / "src" / "lacuna_paper"
FULL_STUDY = OF_PAPER / "full_study.json"

KINDS = {
    "String": "text", "Int64": "whole number", "Float64": "number", "Boolean": "true or false",
    "List(Int64)": "list of whole numbers", "List(Float64)": "list of numbers",
}  # fmt: skip
"""Types of columns in words."""

NOTE = "<!-- Written by reference/generate.py: edit the code, not this page. -->"


class Page(NamedTuple):
    """A page about some modules: its title, what it is about, and the names of each module; none stands for all."""

    title: str
    about: str
    modules: Mapping[str, tuple[str, ...]]


PAGES: dict[str, Page] = {
    "agents": Page(
        "Agents",
        "An agent, its settings, and the loop that plays it.",
        {
            "lacuna": (
                "Agent",
                "Space",
                "Settings",
                "DEFAULT",
                "UNPLANNED",
                "METHODS",
                "YARDSTICKS",
                "AgentLike",
                "OwnMethod",
                "play",
                "ImputedObservation",
                "__version__",
            ),
            "lacuna.agent.own_method": ("find_method",),
            "lacuna.agent": (),
            "lacuna.agent.observation": ("Observation",),
            "lacuna.wrappers.imputed": ("Show",),
            "lacuna.agent.savefile": ("SaveFileError", "OtherKernelsWarning", "OtherKernels"),
        },
    ),
    "trials": Page(
        "Trials",
        "A trial with many participants: what it is given, what it answers, its log.",
        {
            "lacuna": ("Trial", "TrialFile"),
            "lacuna.trial.engine.requests": ("Decision", "Outcome"),
            "lacuna.trial.engine.writer": ("Writer",),
            "lacuna.trial.file.context": ("ContextSchema", "Categories", "Bins", "Reading"),
            "lacuna.trial.file.declared": ("Allocation", "Reward", "UpdateAt"),
            "lacuna.trial.engine.replay": ("replay", "ReplayError", "RedactedError"),
            "lacuna.trial.log.keys": ("Secret", "DrawsKey"),
            "lacuna.trial.log.chained_log": ("read_log", "Entry", "Head", "LogError"),
            "lacuna.trial.log.log_store": ("StoreError", "StoreBusyError", "StoreConflictError"),
        },
    ),
    "running": Page(
        "Runs",
        "An agent or a yardstick in a world, measured.",
        {
            "lacuna": ("compare", "Comparison", "Problem", "run_trial", "run_trials", "Run"),
            "lacuna.run": (),
            "lacuna.report.compare": ("WorldLike", "MechanismLike", "MethodLike"),
            "lacuna.run.problems": ("EnvProblem", "find_problem"),
            "lacuna.run.env_run": ("EnvRun",),
            "lacuna.run.loop": ("Trace",),
            "lacuna.run.measures": ("SUMS", "figures", "episode_means"),
        },
    ),
    "replaying": Page(
        "Replays",
        "A run to watch, on one page; and a page checked against its header.",
        {
            "lacuna": ("replay", "Replay"),
            "lacuna.report": (
                "Recording",
                "Stage",
                "record",
                "recording_json",
                "player_page",
                "player_element",
                "still_picture",
            ),
            "lacuna.report.recording": ("Moments",),
            "lacuna.report.verifying": ("check_page", "recordings_in"),
        },
    ),
    "missingness": Page(
        "Missingness",
        "Mechanisms, their labels, and the wrapper that hides parts of any environment.",
        {"lacuna.missingness": (), "lacuna.missingness.texts": ("mechanism", "MechanismKind")},
    ),
    "observing": Page(
        "Observations",
        "Wrappers that change what is shown of an environment: bins, factored parts, delays, noise.",
        {"lacuna.wrappers": (), "lacuna.agent.binning": ("Binning", "Counts"), "lacuna.wrappers.noisy": ("Numbers",)},
    ),
    "fitting": Page(
        "Mechanisms from data",
        "What a log says about how values went missing. It needs the extra `study`.",
        {
            "lacuna": ("from_masks", "FittedMissingness"),
            "lacuna.missingness.fitting.fit_tables": (
                "Rate",
                "RateGiven",
                "PatternShare",
                "Persistence",
                "BurstParameter",
                "DriverTest",
            ),
            "lacuna.missingness.fitting.mask_models": ("Model",),
            "lacuna.missingness.fitting.mask_log": ("MaskLog", "Column"),
            "lacuna.missingness.fitting.chain": ("ChainFit",),
        },
    ),
    "world-builders": Page(
        "Worlds in Python",
        "Worlds by name, the worlds that come with lacuna, and the decorator that declares one.",
        {
            "lacuna": ("make_world", "Lake"),
            "lacuna.worlds": (),
            "lacuna.worlds.registry": ("WORLDS", "World", "world", "find_world", "parse_world"),
            "lacuna.worlds.lake": ("PAPER_MAP", "MOVES", "Rewards", "Ground"),
            "lacuna.worlds.lake_picture": ("LakePainter",),
            "lacuna.worlds.machine": ("machine",),
            "lacuna.worlds.mobile_health": ("mobile_health",),
            "lacuna.worlds.relay": ("relay",),
            "lacuna.worlds.toys": ("corridor", "field", "bandit", "loop"),
            "lacuna.worlds.toy_text": ("from_toy_text", "frozen_lake_mdp", "cliff_walking_mdp", "taxi_mdp"),
        },
    ),
    "mdp": Page(
        "Decision problems",
        "A finite decision problem as arrays, its optimum, and its Gymnasium environment.",
        {
            "lacuna": ("TabularMDP", "TabularEnv", "solve", "evaluate"),
            "lacuna.worlds.mdp.tabular": ("Outcome",),
            "lacuna.worlds.mdp.solve": ("Solution", "expected_steps"),
            "lacuna.worlds.mdp.painter": ("Hidden", "Painter", "PicturePainter"),
            "lacuna.worlds.mdp.drawing": ("Drawing", "Scene", "Ground", "drawing_of"),
        },
    ),
    "studies": Page(
        "Studies in Python",
        "A study, its store, and the places where its runs are computed.",
        {
            "lacuna": ("Study", "Store", "Local", "run_study"),
            "lacuna.study": ("run_studies", "Progress", "shown_on_terminal", "SCHEMA", "export"),
            "lacuna.study.runs": ("RunSpec",),
            "lacuna.study.spec": ("StudyError",),
            "lacuna.references": ("is_reference", "load", "source_digest", "resolve"),
            "lacuna.study.store": ("StoreError",),
            "lacuna.study.runner": ("Engine", "Outcome", "EngineError"),
            "lacuna.study.engines": ("Dask", "run_on_slurm"),
        },
    ),
    "summaries": Page(
        "Tables of a study",
        "From a table of runs to means, curves, paired differences and scores over tasks; and two stores compared.",
        {
            "lacuna.study": ("thinned", "with_intervals"),
            "lacuna.study.outcomes": (),
            "lacuna.study.summaries": (),
            "lacuna.study.store_comparison": (),
        },
    ),
    "statistics": Page(
        "Statistics",
        "Estimates over trials, with intervals.",
        {
            "lacuna.study": (
                "LEVEL",
                "ROUNDING",
                "Interval",
                "mean_interval",
                "paired_difference",
                "paired_ratio",
                "paired_p_value",
                "holm",
            ),
            "lacuna.study.statistics": (),
        },
    ),
    "selection": Page(
        "Selection",
        "Which setting each method is shown at.",
        {
            "lacuna.study": (
                "MEASURES",
                "FIGURES",
                "METHOD",
                "HYPER_PARAMETERS",
                "Columns",
                "COLUMNS",
                "Draw",
                "choose",
                "chosen_runs",
                "with_open_episode",
            ),
            "lacuna.study.selection": (),
        },
    ),
    "checks": Page(
        "Checks",
        "Contracts for worlds, mechanisms and agents of your own.",
        {"lacuna": ("check_world", "check_mechanism", "check_agent"), "lacuna.checks": ()},
    ),
    "report": Page(
        "Charts and pages",
        "Charts as files, and pages of one file. They need the extra `report`.",
        {
            "lacuna.report": (),
            "lacuna.report.study_report": (),
            "lacuna.report.charts": (),
            "lacuna.report.findings": (),
            "lacuna.report.study_files": (),
            "lacuna.report.page": (),
            "lacuna.report.html_tables": (),
            "lacuna.report.chart_files": (),
            "lacuna.report.axes": (),
            "lacuna.report.panels": (),
            "lacuna.report.forest": (),
            "lacuna.report.styles": (),
        },
    ),
    "extending": Page(
        "Kernels and commands",
        "What a package uses that brings kernels or a command of its own.",
        {"lacuna.kernels": (), "lacuna.cli": ()},
    ),
}


def main() -> None:
    """Write everything."""
    (OF_PAPER / "story" / "results.json").write_text(story_results(), encoding="utf-8")
    (OF_PAPER / "frontier" / "deep_learners.json").write_text(deep_learners(), encoding="utf-8")
    for path, text in pages().items():
        target = ROOT / "docs" / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    FULL_STUDY.write_text(full_study(), encoding="utf-8")
    for stale in set((ROOT / "docs" / "reference").glob("*.md")) - {ROOT / "docs" / path for path in pages()}:
        stale.unlink()


def full_study() -> str:
    """Give the verdicts of the full study, which the package keeps, from its results, which are with the pages."""
    results = json.loads((ROOT / "docs" / "results" / "claims.json").read_text(encoding="utf-8"))
    return json.dumps(in_brief(results), indent=1, ensure_ascii=False) + "\n"


def deep_learners() -> str:
    """Give what the page of the paper shows of the runs of deep learners, a row a line; the package carries it."""
    runs = json.loads((ROOT / "docs" / "results" / "deep.json").read_text(encoding="utf-8"))["runs"]
    return "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in deep_rows(runs)) + "\n]\n"


def story_results() -> str:
    """Give what the story's chart shows of the measured horizons; the package carries it."""
    return written(extract(json.loads((ROOT / "docs" / "results" / "horizons.json").read_text(encoding="utf-8"))))


@cache
def pages() -> dict[str, str]:
    """Give every generated page by its path below ``docs/``."""
    tables = {
        "settings": settings_page(),
        "methods": methods_page(),
        "worlds": worlds_page(),
        "mechanisms": mechanisms_page(),
        "study-files": study_files_page(),
        "results": results_page(),
        "command": command_page(),
    }
    written = tables | {name: api_page(name) for name in PAGES}
    found = {f"reference/{name}.md": f"{NOTE}\n\n{text.strip()}\n" for name, text in written.items()}
    found["pictures/idea.svg"] = idea_picture()
    found["pictures/replay.svg"] = picture()
    return found | {name: with_examples((ROOT / "docs" / name).read_text(encoding="utf-8")) for name in PRINTING}


# --- tables from declarations ----------------------------------------------------------------------------------------


def settings_page() -> str:
    """Give the table of settings."""
    rows = [
        [
            f"`{name}`",
            setting.about,
            allowed(name, setting),
            shown_value(setting.default if setting.usual is None else setting.usual),
            shown_value(getattr(DEFAULT, name) if name in settings_of(METHODS[DEFAULT.method]) else None),
            owners(name),
        ]
        for name, setting in SETTINGS.items()
    ]
    head = ["setting", "meaning", "values", "default", "in `DEFAULT`", "methods that have it"]
    return f"""# Settings

Every field of [`Settings`](agents.md#settings) beside `method`. An agent without settings takes `lacuna.DEFAULT`. A
`Settings` of your own starts from the defaults in the fourth column. [The idea](../explanation/idea.md) explains what
they do.

{table(head, rows)}
"""


def allowed(name: str, setting: Setting) -> str:
    """Say which values a setting may have, as its declaration and the checks say."""
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    most = "10⁹" if setting.most == 10**9 else f"{setting.most:,.0f}"
    if setting.kind is int:
        return f"a whole number, {setting.least} to {most}"
    owner = next(method.name for method in NAMED.values() if setting.belongs_to(method))
    zero: Any = {name: 0.0}
    try:
        Settings(owner, **zero)
    except ValueError:
        return f"above 0, up to {most}"
    return f"0 to {most}"


def owners(name: str) -> str:
    """Name the methods that have a setting."""
    have = [method for method in NAMED.values() if name in settings_of(method)]
    groups = {
        "all": list(NAMED.values()),
        "all that learn": [method for method in NAMED.values() if method.learns],
        "all with pathways: `mi-…`": [method for method in NAMED.values() if method.multiple],
    }
    return next((words for words, group in groups.items() if group == have), listed(method.name for method in have))


def methods_page() -> str:
    """Give the tables of methods and yardsticks."""
    return f"""# Methods and yardsticks

The names that `Settings`, study files and `lacuna run --method` take. Single imputation (SI) is an MI method with
`K = 1`. [The idea](../explanation/idea.md) explains how they work.

## Methods

{method_table(METHODS)}

## Yardsticks

Yardsticks know what no agent can know, so an `Agent` refuses them. A trial or a study runs them like methods, on the
same random streams. [Yardsticks](../explanation/yardsticks.md) says what each one shows.

{method_table(YARDSTICKS)}
"""


def method_table(methods: Mapping[str, Method]) -> str:
    """Give some methods as a table."""
    head = ["name", "in charts", "acts on", "learns Q from", "learns the model from", "settings"]
    rows = [
        [
            f"`{method.name}`",
            method.title,
            method.acts_on,
            method.learns_q_from.replace("- ", "– "),
            re.sub("^-", "–", method.learns_t_from),
            listed(settings_of(method)),
        ]
        for method in methods.values()
    ]
    return table(head, rows)


def worlds_page() -> str:
    """Give the worlds with their parameters."""
    overview, parts = [], []
    for name, world in WORLDS.items():
        mdp = world.make()
        shows = " × ".join(f"{part} {size}" for part, size in zip(mdp.space.names, mdp.space.sizes, strict=True))
        size = [str(mdp.n_states), shows, str(mdp.n_actions)]
        overview.append([f"[`{name}`](#{name})", f"`{world.env_id}`", world.about, *size])
        types = signature(world.build).parameters
        words = definitions(world.build.__module__, world.build.__name__, "Parameters")
        rows = [
            [f"`{key}`", inline(words[key], links()), f"`{types[key].annotation}`", shown_value(default)]
            for key, default in world.parameters.items()
        ]
        where = f"Made by {link(world.build.__name__, links())}. Actions: {', '.join(mdp.action_names)}."
        parts.append(f"## {name}\n\n{where}\n\n{table(['parameter', 'meaning', 'type', 'default'], rows)}")
    head = ["name", "Gymnasium id", "what it is", "true states", "shows", "actions"]
    return f"""# Worlds

The names that `make_world`, study files and `lacuna run --world` take. On the command line parameters follow the name:
`lake,wind=0.2,stay=true`. `map=@FILE` reads a text from a file.

{table(head, overview)}
""" + "\n\n".join(["", *parts])


def mechanisms_page() -> str:
    """Give the mechanisms that have a name."""
    rows = [
        [f"`{kind.name}`", f"`{kind.written}`", kind.about, link(kind.build.__name__, links())]
        for kind in MECHANISMS.values()
    ]
    return f"""# Mechanisms

The texts that `MissingObservation`, study files and `lacuna run --missingness` take. In Python there are also
[`by_component`](missingness.md#by_component), [`by_state`](missingness.md#by_state) and
[`by_true_state`](missingness.md#by_true_state), which take any rates.
[Missingness](../explanation/missingness.md) gives an example and the label of each.

{table(["name", "text", "what is hidden", "constructor"], rows)}
"""


def study_files_page() -> str:
    """Give the keys of a study file."""
    words = field_docs(StudySpec)
    rows = []
    for name, found in StudySpec.model_fields.items():
        default = "needed" if found.is_required() else shown_value(found.default)
        rows.append([f"`{name}`", inline(words[name], links()), default])
    return f"""# Study files

A study file is TOML. [Run a study](../how-to/study.md) shows one.

{table(["key", "meaning", "default"], rows)}

The keys of `grid`, and of a method beside `name`, are the [settings](settings.md). Each takes one value, or a list of
values to try; lists are crossed. A setting of the grid goes to the methods that have it. What a method says itself
comes before what the grid says. What is named twice is run once.
"""


def results_page() -> str:
    """Give the figures of a run and the columns of a store."""
    figures = definitions("lacuna.run.repetitions", "run_trial", "Figures")
    words = definitions("lacuna.study.store", "SCHEMA", "Columns")
    words |= {name: f"{setting.about[0].upper()}{setting.about[1:]}." for name, setting in SETTINGS.items()}
    words |= {name: text for name, text in figures.items() if name in SCHEMA}
    rows = [[f"`{name}`", KINDS[str(kind)], inline(words[name], links())] for name, kind in SCHEMA.items()]
    return f"""# Figures and columns

## Figures of a run

What [`run_trial`](running.md#run_trial) gives, and `lacuna run --json` for each trial. An episode is *completed* if it
ended by itself. It is *cut off* if the world truncated it, and *open* if the run stopped in the middle of it.

{table(["figure", "meaning"], [[f"`{name}`", inline(text, links())] for name, text in figures.items()])}

## Columns of a store

One row per run, in the order of [`SCHEMA`](studies.md#schema). A setting is empty where a method does not have it.

{table(["column", "type", "meaning"], rows)}
"""


def command_page() -> str:
    """Give every command with its options, as the command itself declares them."""
    root: Any = typer.main.get_command(app)
    parts = [
        "# The command",
        "`lacuna COMMAND --help` says the same in a terminal. A wrong value gives one sentence and exit code 2; Ctrl-C "
        "gives exit code 130; a study that is not complete gives 1.",
    ]
    for words, command in commands(root, "lacuna"):
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option"]
        named = [one.name.upper() if one.required else f"[{one.name.upper()}]" for one in arguments]
        usage = " ".join([words, *named, *(["[OPTIONS]"] if options else [])])
        package = PACKAGE_OF.get(words.split()[1])
        brought = f" It comes with the package `{package}`." if package else ""
        parts.append(f"## {words}\n\n{command.help}{brought}\n\n```\n{usage}\n```")
        rows = [[f"`{one.name.upper()}`", one.help, option_default(one)] for one in arguments]
        rows += [[listed([*one.opts, *one.secondary_opts]), one.help, option_default(one)] for one in options]
        if rows:
            parts.append(table(["option", "meaning", "default"], rows))
    return "\n\n".join(parts)


def commands(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, with the words that call it."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


def option_default(option: Any) -> str:
    """The default of an option in words."""
    if isinstance(option.show_default, str):
        return option.show_default
    if option.required:
        return "needed"
    if isinstance(option.default, bool):
        return "on" if option.default else "off"
    return "–" if option.default is None else shown_value(option.default)


# --- interfaces from docstrings --------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A public name, where it is found, and the page and heading that describe it."""

    page: str
    heading: str
    module: str
    name: str


@cache
def entries() -> dict[str, Entry]:
    """Give every public name; one that several pages or modules have is described where it is named first."""
    found: dict[str, Entry] = {}
    anchors = set()
    for title, page in PAGES.items():
        for module, names in page.modules.items():
            for name in names or public_names(module):
                # `lacuna.replay` watches a run; the function of a trial's log has the same name, and a page of its own.
                key = f"{module}.{name}" if (module, name) == ("lacuna.trial.engine.replay", "replay") else name
                if key not in found:
                    # Headings that differ in capitals only would share an anchor.
                    heading = f"{module}.{name}" if (title, anchor(name)) in anchors else name
                    anchors.add((title, anchor(name)))
                    found[key] = Entry(title, heading, module, name)
    return found


@cache
def links() -> dict[str, str]:
    """Give the place where every public name is described."""
    return {name: f"{one.page}.md#{anchor(one.heading)}" for name, one in entries().items()}


def api_page(title: str) -> str:
    """Give the page about some modules."""
    page, parts = PAGES[title], []
    for module in page.modules:
        here = {key: one for key, one in entries().items() if (one.page, one.module) == (title, module)}
        if here:
            parts.append(
                f"*In `{module}`:* " + ", ".join(f"[`{one.name}`]({links()[key]})" for key, one in here.items())
            )
            parts += [entry(one.heading, module, one.name, links()) for one in here.values()]
    return "\n\n".join([f"# {page.title}", page.about, *parts])


def definitions(module: str, name: str, section: str) -> dict[str, str]:
    """Give the terms that a section of a docstring defines; terms that share a text get it each."""
    found = items(sections(doc_of(module, name))[section])
    return {term.strip(): words for terms, words in found.items() for term in terms.split(",")}


# --- pieces ----------------------------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Give a table as Markdown."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def listed(names: Iterable[str]) -> str:
    """Give names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def shown_value(value: Any) -> str:
    """Give a default as code; none and long texts in words."""
    if value is None:
        return "none"
    if isinstance(value, str) and "\n" in value:
        return "the paper's map"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        value = tuple(value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


# --- the files of the package ----------------------------------------------------------------------------------------

PRINTING = ("how-to/trial.md",)
"""Pages that print files of ``examples/``."""

_PRINTED = re.compile(
    r"(<!-- (examples/[\w.]+): written by reference/generate.py -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL
)


def with_examples(page: str) -> str:
    """Give a page with the examples that it prints as they are."""

    def printed(found: re.Match[str]) -> str:
        path = ROOT / found[2]
        kind = {".py": "python", ".toml": "toml"}[path.suffix]
        return f"{found[1]}```{kind}\n{path.read_text(encoding='utf-8').strip()}\n```{found[3]}"

    return _PRINTED.sub(printed, page)


if __name__ == "__main__":
    main()
