"""The tables of the page: the claims with their verdicts, ours against the paper's methods, and short horizons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

from lacuna import DEFAULT, UNPLANNED
from lacuna.agent import method_named
from lacuna.report import (
    Cell,
    Estimate,
    Part,
    Row,
    Text,
    bounds_text,
    details,
    facts,
    forest_plot,
    interval_cell,
    number_text,
    paragraphs,
    reach,
    short_number,
    table,
    when,
)
from lacuna.study import Interval, mean_interval
from lacuna_paper.claims import CLAIMS, Claim
from lacuna_paper.comparison import KNOWING, REACHABLE, Comparison, Comparisons
from lacuna_paper.horizons import (
    OUTCOMES,
    PLANNED,
    WITHOUT,
    Judged,
    Verdicts,
    counts,
    gap_closed,
    judged_apart,
)
from lacuna_paper.horizons import Cell as Problem
from lacuna_paper.verdicts import Answer, Finding, FullStudy

Way = tuple[str, str]
"""A reading of an episode's end, and a way of choosing settings."""

_SIGNS = {"supported": "✓", "not supported": "✗", "undecided": "?"}
_ORDER = tuple(_SIGNS)
_CLASSES = {word: word.replace(" ", "-") for word in _SIGNS}


def ways_of(findings: Sequence[Finding]) -> list[Way]:
    """List the readings and selections that were judged, in their order."""
    return list(dict.fromkeys(finding.way for finding in findings))


def in_words(way: Sequence[str]) -> tuple[str, ...]:
    """Return the options of the page's switches for a way."""
    return tuple(word.replace("-", " ") for word in way)


# --- the claims ---------------------------------------------------------------------------------------------------


def claims_table(findings: Sequence[Finding], titles: dict[str, str], full: FullStudy) -> Markup:
    """Make the table of verdicts, with the comparisons behind each row; `titles` are those of the figures."""
    ways = ways_of(findings)
    found = {(finding.claim, *finding.way): finding for finding in findings}
    rows = [
        _row(claim, [found[claim.id, *way] for way in ways if (claim.id, *way) in found], titles, full)
        for claim in CLAIMS
        if any((claim.id, *way) in found for way in ways)
    ]
    heads = ["Claim", "Where", *(Markup("{}, <br>{}").format(*in_words(way)) for way in ways)]
    return Markup('<div class="cards wide-first">{}</div>').format(table(heads, rows))


def verdict(word: str, says: str = "") -> Markup:
    """Return a verdict with its sign and colour; `says` replaces its word."""
    return Markup('<span class="verdict {}">{} {}</span>').format(_CLASSES[word], _SIGNS[word], says or word)


def counted_verdicts(found: Iterable[str]) -> list[Part]:
    """Count verdicts, as parts of a bar."""
    n = Counter(found)
    return [Part(n[word], word, sign, _CLASSES[word]) for word, sign in _SIGNS.items()]


def interval(found: Finding | Answer) -> str:
    """Write an effect with its interval.

    Examples
    --------
    >>> interval(Answer("a minus b", 2.5, 1.0, 4.0, "reward per episode", "above 0", "supported"))
    '2.5 [1, 4]'
    """
    if found.effect is None:
        return "–"
    bounds = "" if found.low is None or found.high is None else f" [{_short(found.low)}, {_short(found.high)}]"
    return _short(found.effect) + bounds


def _short(value: float) -> str:
    return number_text(value, ".3g" if abs(value) < 1000 else ",.0f")


def _row(claim: Claim, findings: Sequence[Finding], titles: dict[str, str], full: FullStudy) -> Row:
    cells = [_verdict_cell(finding, full.of(finding.claim, finding.way)) for finding in findings]
    sections = ", ".join(part.split()[0] for part in claim.section.split(", "))
    where = Markup('{}, <a href="#figure-{}">figure</a>').format(sections, claim.figure)
    return Row(
        [Markup("{}").format(claim.text), where, *cells],
        more=_definition(claim, titles) + Markup("\n").join(_findings(findings)),
        id=f"claim-{claim.id}",
    )


def _verdict_cell(finding: Finding, full: str | None) -> Cell:
    """The verdict, the effect that decided it as picture and numbers, and the verdict of the full study."""
    unit = f" {finding.unit}, wanted {finding.deciding.wanted}" if finding.effect is not None else ""
    beside = Markup("")
    if full is not None:
        flag = Markup(' <span class="differs">≠ differs</span>') if full != finding.verdict else ""
        beside = Markup(' <span class="quiet">full study: {}{}</span>').format(verdict(full), flag)
    text = Markup('<div class="judged">{}{}</div>{}<div class="quiet">{}{}</div>').format(
        verdict(finding.verdict), beside, _picture(finding.deciding, finding.verdict), interval(finding), unit
    )
    return Cell(text, f"{_ORDER.index(finding.verdict)} {finding.verdict}")


def _estimate(part: Answer) -> Estimate | None:
    if part.effect is None:
        return None
    return Estimate(part.effect, part.low, part.high, (part.region.low, part.region.high))


def _picture(part: Answer, word: str, scale: tuple[float, float] | None = None) -> Markup:
    """An effect with its interval and the region where it is wanted; nothing if there is no effect."""
    found = _estimate(part)
    told = f"{interval(part)} {part.unit}, wanted {part.wanted}: {word}"
    return Markup("") if found is None else forest_plot(found, _CLASSES[word], told, scale)


def _definition(claim: Claim, titles: dict[str, str]) -> Markup:
    link = Markup('<a href="#figure-{}">{}</a>').format(claim.figure, titles.get(claim.figure, claim.figure))
    return facts(
        [("In the paper", claim.section), ("Compared", claim.compared), ("Decided by", claim.threshold),
         ("Chart", link), ("Name", Markup("<code>{}</code>").format(claim.id))]
    )  # fmt: skip


def _findings(findings: Sequence[Finding]) -> Iterator[Markup]:
    for finding in findings:
        words = ", ".join(in_words(finding.way)).capitalize()
        yield Markup("<h4>{}: {}, {}</h4>").format(words, verdict(finding.verdict), finding.basis.in_words)
        if finding.note:
            yield paragraphs(finding.note)
        scales = {}
        for key in {(part.unit, part.wanted) for part in finding.parts}:
            alike = [_estimate(part) for part in finding.parts if (part.unit, part.wanted) == key]
            drawn = [one for one in alike if one is not None]
            scales[key] = reach(drawn) if drawn else None
        rows: list[Sequence[Text | Cell]] = [
            [part.label, Cell(_effect(part, scales[part.unit, part.wanted]), part.effect), part.unit, part.wanted,
             verdict(part.verdict)]
            for part in finding.parts
        ]  # fmt: skip
        parts = table(["Comparison", "Effect, 95 % interval", "Unit", "Wanted", "Verdict"], rows)
        yield details(f"All {len(rows)} comparisons", parts) if len(rows) > 1 else parts


def _effect(part: Answer, scale: tuple[float, float] | None) -> Markup:
    """An effect as a cell of a table, on the scale shared by effects of the same measure."""
    return Markup("{}{}").format(interval(part), _picture(part, part.verdict, scale))


# --- ours without planning ------------------------------------------------------------------------------------------


def beyond_section(comparisons: Comparisons, ways: Iterable[Way], figure: Markup) -> Markup:
    """Make the section: a chart, the paper's problems with its methods tuned, and four worlds with nothing tuned.

    Parameters
    ----------
    comparisons
        By the way of choosing settings. All are of the episodic reading, where optimal values need no discount.
    ways
        The readings and ways of choosing that the page's switches offer.
    figure
        The chart.
    """
    settings = {"K": UNPLANNED.K, "α": UNPLANNED.alpha, "γ": UNPLANNED.gamma, "ε": UNPLANNED.epsilon}
    settings |= {"smoothing": UNPLANNED.smoothing, "parents": UNPLANNED.parents, "optimism": UNPLANNED.optimism}
    intro = paragraphs(
        Markup(
            "Ours without planning is not in the paper: <code>{}</code> ({}) learns from every pair of values of "
            "a component that was really seen, finds out which component depends on which, and counts an action not "
            "yet tried as a little better. It has one setting for every problem, because a trial cannot tune. "
            "Yardsticks, which know what no agent can, show how far it is from what could be reached."
        ).format(UNPLANNED.method, ", ".join(f"{name} = {value:g}" for name, value in settings.items()))
    )
    tuned = [Markup("<div {}>{}</div>").format(when(*in_words(way)), _tuned(comparisons, *way)) for way in ways]
    return intro + figure + Markup("\n").join([*tuned, _untuned(comparisons.get("untuned", ()))])


def in_short(comparisons: Comparisons, ways: Iterable[Way]) -> Markup:
    """Say in one sentence how ours compares, for each way of choosing the paper's settings."""
    blocks = [
        Markup("<div {}>{}</div>").format(when(*in_words((reading, selection))), paragraphs(_sentence(found)))
        for reading, selection in ways
        if reading == "episodic" and (found := comparisons.get(selection))
    ]
    return Markup("\n").join(blocks)


def _sentence(found: Sequence[Comparison]) -> Markup:
    most = max(found, key=lambda one: one.ahead.estimate)
    ahead, behind = sum(one.clearly_ahead for one in found), sum(one.clearly_behind for one in found)
    return Markup(
        "On {} ours without planning, at its one setting, is clearly ahead of the best of the paper's "
        "tuned methods in {} of {} problems, clearly behind in {}, and undecided in {}; most ahead under "
        '<code>{}</code>, {} against {}, {} (<a href="#beyond">beyond the paper</a>).'
    ).format(
        found[0].basis.in_words, ahead, len(found), behind, len(found) - ahead - behind, most.missingness,
        short_number(most.ours.estimate), short_number(most.theirs.estimate), most.best,
    )  # fmt: skip


def _tuned(comparisons: Comparisons, reading: str, selection: str) -> Markup:
    title = Markup("<h3>The paper's problems, its methods tuned</h3>")
    if reading != "episodic":
        return title + paragraphs(
            "Ours was run in the episodic reading only, where optimal values need no discount: switch to it."
        )
    found = comparisons.get(selection, ())
    if not found:
        return title + paragraphs("Ours was not run on the trials shown.")
    tuned = "five trials of their own in each draw" if selection == "held-out" else "the very trials shown"
    text = (
        f"Each of the paper's methods at the best of its settings under each kind of missingness, chosen on {tuned}; "
        f"the best of these methods against ours at its one setting, on the same {found[0].basis.in_words}. "
        "Which one is best is picked on the trials shown, which favours the paper's. Reward per episode over whole "
        "runs, open and cut episodes counted; 95 % intervals. The gap is counted to QMDP with the true model and the "
        "exact belief given all that an agent is told, rewards included: 0 % is the best of the paper's and 100 % that "
        "QMDP; below 0 ours is behind. The other QMDP ignores rewards. "
    )
    return title + paragraphs(text + _counted(found)) + _table(found)


def _untuned(found: Sequence[Comparison]) -> Markup:
    title = Markup("<h3>Four worlds, nothing tuned</h3>")
    if not found:
        return title + paragraphs("These worlds were not run.")
    text = (
        "Every method at one fixed setting (α = 0.1, γ = 1, K = 10, no ε), also where missingness comes in bursts; "
        f"{found[0].basis.in_words}. All four had a part in choosing the constants of ours, on other trials. "
    )
    return title + paragraphs(text + _counted(found)) + _table(found, worlds=True)


def _counted(found: Sequence[Comparison]) -> str:
    """How often ours is ahead and behind, by intervals, and where it is behind."""
    ahead, behind = sum(one.clearly_ahead for one in found), [one for one in found if one.clearly_behind]
    text = f"Of {len(found)} comparisons, ours is clearly ahead in {ahead} and clearly behind in {len(behind)}"
    return text + (": " + ", ".join(f"{one.world} {one.missingness}" for one in behind) if behind else "") + "."


def _table(found: Sequence[Comparison], *, worlds: bool = False) -> Markup:
    heads: list[Text] = ["World"] if worlds else []
    heads += ["Missingness", "Ours minus the best of the paper's", "Ours", "Best of the paper's"]
    heads += [f"Share of the gap to {method_named(REACHABLE).title}"]
    heads += [method_named(name).title for name in KNOWING]
    rows = []
    for one in found:
        row: list[Text | Cell] = [one.world] if worlds else []
        row += [one.missingness, interval_cell(one.ahead), interval_cell(one.ours, "")]
        row += [interval_cell(one.theirs, str(one.best))]
        row += [_share(one.share), *(interval_cell(one.yardsticks.get(name), "") for name in KNOWING)]
        rows.append(row)
    return Markup('<div class="many-columns">{}</div>').format(table(heads, rows))


# --- short horizons -----------------------------------------------------------------------------------------------

_OUTCOMES = {"clearly ahead": "supported", "level": "undecided", "clearly behind": "not supported"}


def outcome(verdicts: Verdicts) -> str:
    """Say in one line what came out at the shortest and the longest horizon that were judged."""
    found = counts(verdicts)
    if not found:
        return "Regret at short horizons"
    ends = dict.fromkeys((min(found), max(found)))
    return "Planning " + "; ".join(f"after {horizon:,} steps {_score(found[horizon])}" for horizon in ends)


def _score(found: Mapping[str, int]) -> str:
    ahead, _, behind = (found[word] for word in OUTCOMES)
    return f"is clearly ahead in {ahead} of {sum(found.values())} problems, clearly behind in {behind or 'none'}"


def horizons_section(cells: Sequence[Problem], verdicts: Verdicts, figure: Markup, *, reduced: bool) -> Markup:
    """Make the section: what was compared, a chart, and a table with a row for each problem.

    Parameters
    ----------
    cells, verdicts
        What was run, and what came out.
    figure
        The chart.
    reduced
        Whether it is the reduced form of the study.
    """
    if not cells:
        return paragraphs("Short horizons were not run.")
    steps, trials = max(cell.steps for cell in cells), min(len(cell.trials) for cell in cells)
    intro = Markup(
        "The default of this library, <code>{}</code>, plans on the model that it imputes with; <code>{}</code>, set "
        "as above, is the best of ours that does not. Each has one setting for every problem. Each ran {} trials of {} "
        "steps in each of {} problems; these trials had no part in choosing a constant. "
    ).format(DEFAULT.method, UNPLANNED.method, trials, f"{steps:,}", len(cells))
    if reduced:
        intro += Markup("This is the reduced form: <code>--full</code> runs more trials, problems and steps. ")
    judged = Markup(
        "A difference is in reward per step over all steps so far, paired by trials. It is clear if its p value "
        "(Student's t), corrected by Holm's method for all {} differences of the table, is at most 5 %. The 95 % "
        "intervals are not corrected. "
    ).format(len(verdicts))
    above = paragraphs(intro + _told(verdicts) + _stuck(cells))
    below = paragraphs(judged + _otherwise(verdicts) + _on_gap(steps))
    return above + figure + below + _horizons(cells, verdicts)


def _told(verdicts: Verdicts) -> str:
    """What came out at each horizon, and where planning is behind."""
    told = [f"after {horizon:,} steps it {_score(found)}" for horizon, found in counts(verdicts).items()]
    behind = [
        f"{world} {missingness} after {horizon:,}"
        for (world, missingness, horizon), found in verdicts.items()
        if found.outcome == "clearly behind"
    ]
    text = "; ".join(told)
    return text[:1].upper() + text[1:] + (f". Behind: {', '.join(behind)}." if behind else "." if told else "")


def _stuck(cells: Sequence[Problem]) -> str:
    """Where ours completed no episode."""
    found = [
        f"{name} in {n} of {len(cell.trials)} trials of {cell.world} {cell.missingness}"
        for cell in cells
        for name in (PLANNED, WITHOUT)
        if (n := cell.without_episode.get(name, 0))
    ]
    return f" No episode was completed by {', '.join(found)}." if found else ""


def _otherwise(verdicts: Verdicts) -> str:
    """Which verdicts would differ if horizons were not judged together."""
    differ = [
        f"{world} {missingness} after {horizon:,} would be {found.outcome}"
        for (world, missingness, horizon), found in judged_apart(verdicts).items()
        if found.outcome != verdicts[world, missingness, horizon].outcome
    ]
    return f"Corrected for each horizon by itself, {'; '.join(differ)}. " if differ else ""


def _on_gap(steps: int) -> str:
    return (
        f"The gap is counted in reward per episode over {steps:,} steps, open and cut episodes counted: 0 % is ours "
        f"without planning, 100 % {method_named(REACHABLE).title}."
    )


def _horizons(cells: Sequence[Problem], verdicts: Verdicts) -> Markup:
    horizons = list(counts(verdicts))
    heads: list[Text] = ["World", "Missingness"]
    heads += [f"Planned minus unplanned, {horizon:,} steps" for horizon in horizons]
    heads += ["Share of the gap closed", "Planned, per episode", "Unplanned, per episode"]
    heads += [f"{method_named(REACHABLE).title}, per episode"]
    rows = []
    for cell in cells:
        row: list[Text | Cell] = [cell.world, cell.missingness]
        row += [_judged(verdicts.get((cell.world, cell.missingness, horizon))) for horizon in horizons]
        row.append(_share(gap_closed(cell)))
        for name in (PLANNED, WITHOUT, REACHABLE):
            values = cell.per_episode.get(name)
            row.append(interval_cell(None if values is None else mean_interval(values), ""))
        rows.append(row)
    return Markup('<div class="many-columns">{}</div>').format(table(heads, rows))


def _judged(found: Judged | None) -> Cell:
    if found is None:
        return Cell("–", None)
    text = Markup('{}<br><span class="quiet">{}</span><br>{}').format(
        short_number(found.ahead.estimate), bounds_text(found.ahead), verdict(_OUTCOMES[found.outcome], found.outcome)
    )
    return Cell(text, found.ahead.estimate)


def _share(found: Interval | None) -> Cell:
    if found is None:
        return Cell("–", None)
    text = Markup('{} %<br><span class="quiet">{}</span>').format(
        short_number(100 * found.estimate, 0), bounds_text(found, 100, 0)
    )
    return Cell(text, found.estimate)
