"""The part of the page that goes beyond the paper: where our default stands, and how far from the best possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from lacuna.learning.methods import YARDSTICKS
from lacuna.learning.settings import DEFAULT
from lacuna.paper.claims_table import in_words
from lacuna.paper.comparison import REACHABLE, Standing, Standings
from lacuna.report.page import Cell, Text, paragraphs, when
from lacuna.report.page import table as sortable
from lacuna.report.styles import name_of
from lacuna.study.statistics import Interval


def beyond_section(standings: Standings, ways: Iterable[Sequence[str]], figure: Markup) -> Markup:
    """Make the section: a chart, the paper's problems with its methods tuned, and four worlds with nothing tuned.

    Parameters
    ----------
    standings
        By the way of choosing settings. All are of the episodic reading, where optimal values need no discount.
    ways
        The readings and ways of choosing that the page's switches offer.
    figure
        The chart.
    """
    settings = {"K": DEFAULT.K, "α": DEFAULT.alpha, "γ": DEFAULT.gamma, "ε": DEFAULT.epsilon}
    settings |= {"smoothing": DEFAULT.smoothing, "parents": DEFAULT.parents, "optimism": DEFAULT.optimism}
    intro = paragraphs(
        Markup(
            "The default of this library is not in the paper: <code>{}</code> ({}) learns from every pair of values of "
            "a component that was really seen, finds out which component depends on which, and counts an action not "
            "yet tried as a little better. It has one setting for every problem, because a trial cannot tune. How far "
            "it is from what could be reached is told by yardsticks, which know what no agent can."
        ).format(DEFAULT.method, ", ".join(f"{name} = {value:g}" for name, value in settings.items()))
    )
    tuned = [Markup("<div {}>{}</div>").format(when(*in_words(way)), _tuned(standings, *way)) for way in ways]
    return intro + figure + Markup("\n").join([*tuned, _untuned(standings.get("untuned", ()))])


def in_short(standings: Standings, ways: Iterable[Sequence[str]]) -> Markup:
    """Say in one sentence where our default stands, for each way of choosing the paper's settings."""
    blocks = [
        Markup("<div {}>{}</div>").format(when(*in_words((reading, selection))), paragraphs(_sentence(found)))
        for reading, selection in ways
        if reading == "episodic" and (found := standings.get(selection))
    ]
    return Markup("\n").join(blocks)


def _sentence(found: Sequence[Standing]) -> Markup:
    most = max(found, key=lambda one: one.ahead.estimate)
    ahead, behind = len(_clearly_ahead(found)), len(_clearly_behind(found))
    return Markup(
        "On {} the default of this library, at its one setting, is clearly ahead of the best of the paper's "
        "tuned methods in {} of {} problems, clearly behind in {}, and undecided in {}; most ahead under "
        '<code>{}</code>, {} against {}, {} (<a href="#beyond">beyond the paper</a>).'
    ).format(
        found[0].basis.told, ahead, len(found), behind, len(found) - ahead - behind, most.missingness,
        _number(most.ours.estimate), _number(most.theirs.estimate), name_of(most.best),
    )  # fmt: skip


def _tuned(standings: Standings, reading: str, selection: str) -> Markup:
    title = Markup("<h3>The paper's problems, its methods tuned</h3>")
    if reading != "episodic":
        return title + paragraphs(
            "Our default was run in the episodic reading only, where optimal values need no discount: switch to it."
        )
    found = standings.get(selection, ())
    if not found:
        return title + paragraphs("Ours was not run on the trials shown.")
    tuned = "five trials of their own in each draw" if selection == "held-out" else "the very trials shown"
    text = (
        f"Each of the paper's methods at the best of its settings under each kind of missingness, chosen on {tuned}; "
        f"the best of these methods against ours at its one setting, on the same {found[0].basis.told}. "
        "Which one is best is picked on the trials shown, which favours the paper's. Reward per episode over whole "
        "runs, open and cut episodes counted; 95 % intervals. The gap is counted to QMDP with the true model and the "
        "exact belief given all that an agent is told, rewards included: 0 % is the best of the paper's and 100 % that "
        "QMDP; below 0 ours is behind. The other QMDP ignores rewards. "
    )
    return title + paragraphs(text + _counted(found)) + _table(found)


def _untuned(found: Sequence[Standing]) -> Markup:
    title = Markup("<h3>Four worlds, nothing tuned</h3>")
    if not found:
        return title + paragraphs("These worlds were not run.")
    text = (
        "Every method at one fixed setting (α = 0.1, γ = 1, K = 10, no ε), also where missingness comes in bursts; "
        f"{found[0].basis.told}. All four had a part in choosing the constants of the default, on other trials. "
    )
    return title + paragraphs(text + _counted(found)) + _table(found, worlds=True)


def _counted(found: Sequence[Standing]) -> str:
    """How often ours is ahead, level and behind, by intervals, and where it is behind."""
    ahead, behind = _clearly_ahead(found), _clearly_behind(found)
    told = f"Of {len(found)} comparisons, ours is clearly ahead in {len(ahead)} and clearly behind in {len(behind)}"
    return told + (": " + ", ".join(f"{one.world} {one.missingness}" for one in behind) if behind else "") + "."


def _clearly_ahead(found: Sequence[Standing]) -> list[Standing]:
    return [one for one in found if one.ahead.low is not None and one.ahead.low > 0]


def _clearly_behind(found: Sequence[Standing]) -> list[Standing]:
    return [one for one in found if one.ahead.high is not None and one.ahead.high < 0]


def _table(found: Sequence[Standing], *, worlds: bool = False) -> Markup:
    heads: list[Text] = ["World"] if worlds else []
    heads += ["Missingness", "Ours minus the best of the paper's", "Ours", "Best of the paper's"]
    heads += [f"Share of the gap to {YARDSTICKS[REACHABLE].title}"]
    heads += [method.title for method in YARDSTICKS.values()]
    rows = []
    for one in found:
        row: list[Text | Cell] = [one.world] if worlds else []
        row += [one.missingness, _cell(one.ahead, _bounds(one.ahead)), _cell(one.ours)]
        row += [_cell(one.theirs, name_of(one.best))]
        row += [_share(one.share), *(_cell(one.yardsticks.get(name)) for name in YARDSTICKS)]
        rows.append(row)
    return Markup('<div class="many-columns">{}</div>').format(sortable(heads, rows))


def _cell(found: Interval | None, below: str = "") -> Cell:
    if found is None:
        return Cell("–", None)
    more = Markup('<br><span class="quiet">{}</span>').format(below) if below else ""
    return Cell(Markup("{}{}").format(_number(found.estimate), more), found.estimate)


def _bounds(found: Interval, scale: float = 1.0, digits: int | None = None) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"{_number(scale * found.low, digits)} to {_number(scale * found.high, digits)}"


def _share(found: Interval | None) -> Cell:
    if found is None:
        return Cell("–", None)
    text = Markup('{} %<br><span class="quiet">{}</span>').format(
        _number(100 * found.estimate, 0), _bounds(found, 100, 0)
    )
    return Cell(text, found.estimate)


def _number(value: float, digits: int | None = None) -> str:
    # Rewards of some worlds lie between 0 and 1.
    shown = (2 if abs(value) >= 1 else 3) if digits is None else digits
    text = f"{value:.{shown}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")
