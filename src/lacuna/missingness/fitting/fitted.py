"""`from_masks`: fit the missingness of a log of observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lacuna import display
from lacuna.kernels.space import Space
from lacuna.missingness import Mechanism, after_actions, bursts, by_seen, mcar, pattern_shares, whole
from lacuna.missingness.fitting.chain import ChainFit
from lacuna.missingness.fitting.fit_tables import (
    BurstParameter,
    DriverTest,
    PatternShare,
    Persistence,
    Rate,
    RateGiven,
    burst_rows,
    driver_tests,
    pattern_rows,
    persistence_rows,
    rate_rows,
    rates_given,
)
from lacuna.missingness.fitting.mask_log import Column, MaskLog, read_log
from lacuna.missingness.fitting.mask_models import (
    KINDS,
    Model,
    burst_arguments,
    conditional_rates,
    exact_shares,
    fit_chains,
    models,
    numbers_of,
    pattern_counts,
)
from lacuna.missingness.rates import Where, space_of
from lacuna.quantities import counted
from lacuna.validation import extras_named, nearest, one_of, shown
from lacuna.worlds.mdp.tabular import TabularMDP

if TYPE_CHECKING:
    import polars as pl

CANNOT_KNOW = (
    "No log can tell whether a value goes missing because of what it is (NMAR): the values that would show it are the "
    "missing ones. If that is plausible here, try mechanisms that do so beside this one."
)

TABLES = ("rates", "by", "patterns", "persistence", "bursts", "tests", "models")


@dataclass(frozen=True, eq=False, repr=False)
class FittedMissingness:
    """What a log says about how values went missing: tables with standard errors, tests, and mechanisms to simulate it.

    Made by `from_masks`. Each table is a tuple of rows; `frame` gives one as a polars frame.

    Parameters
    ----------
    log
        The log, as arrays.
    rates
        How often each component is missing.
    by
        The same given the value of another component while that is seen, and given the action.
    patterns
        How often each pattern of missing components comes, the most frequent first.
    persistence
        How often a component is missing again, and how often it becomes missing.
    bursts
        Parameters of the hidden on/off chains.
    tests
        For every component and driver, whether the one goes missing more often at some values of the other.
    models
        The models fitted, the best by BIC first.
    chains
        The fitted hidden chains, by the kind of model: one for the whole vector, or one for each component.
    """

    log: MaskLog
    rates: tuple[Rate, ...]
    by: tuple[RateGiven, ...]
    patterns: tuple[PatternShare, ...]
    persistence: tuple[Persistence, ...]
    bursts: tuple[BurstParameter, ...]
    tests: tuple[DriverTest, ...]
    models: tuple[Model, ...]
    chains: dict[str, tuple[ChainFit, ...]]

    @property
    def p_mcar(self) -> float | None:
        """The p-value of "missing completely at random": the least of all tests, times their number; None without any.

        Under MCAR it falls below a level with at most that probability (Bonferroni).
        """
        found = [test.p for test in self.tests if test.p is not None]
        return min(1.0, min(found) * len(found)) if found else None

    @property
    def verdict(self) -> str:
        """The test against MCAR in a sentence."""
        p = self.p_mcar
        if p is None:
            return "Nothing can be tested: no component is seen, with several values, both while another is and is not."
        if p >= 0.05:
            return f"No sign against MCAR (p = {p:.2g}, all tests together)."
        least = min((test for test in self.tests if test.p is not None), key=lambda test: test.p or 0.0)
        return (
            f"Not MCAR (p = {p:.2g}, all tests together): {least.component} goes missing more often at some values of "
            f"{least.driver} than at others.{self._left_out(least.driver)}"
        )

    def _left_out(self, driver: str) -> str:
        """A sentence if the best model has no rates by what goes with missingness, and another one has."""
        kind = "after" if self.log.action is not None and driver == self.log.action.name else "by"
        if self.best.kind in {"by", "after"} or kind not in {model.kind for model in self.models}:
            return ""
        return f" The best model, {self.best.kind}, leaves that out; mechanism(…, {kind!r}) has it."

    @property
    def cannot_know(self) -> str:
        """What no log can show."""
        return CANNOT_KNOW

    @property
    def best(self) -> Model:
        """The model with the least BIC."""
        return self.models[0]

    def frame(self, table: str) -> pl.DataFrame:
        """Return one of the tables as a polars frame."""
        with extras_named():
            import polars as pl  # noqa: PLC0415  heavy

        one_of("table", table, TABLES)
        rows = [row._asdict() if hasattr(row, "_asdict") else vars(row) for row in getattr(self, table)]
        columns = {key: [_plain(key, row[key]) for row in rows] for key in (rows[0] if rows else ())}
        if table == "by" and rows:  # values of all drivers, numbers and texts, in one column
            columns["value"] = [None if value is None else str(value) for value in columns["value"]]
        return pl.DataFrame(columns, strict=False)

    def mechanism(
        self, where: Where, kind: str | None = None, *, driver: str | None = None, n_actions: int | None = None
    ) -> Mechanism:
        """Return one of the fitted models as a mechanism; its `name` is the text for study files and the command.

        Parameters
        ----------
        where
            The space or world it is for, or a number of components. If the names of the components are those of the
            log, they are matched by name, else by their order.
        kind
            As in `Model`; the one with the least BIC if not given.
        driver
            The component that the rates go by, for ``"by"``; the one with the least BIC if not given.
        n_actions
            Number of actions, for ``"after"`` if `where` is not a world.
        """
        model = self._model(kind, driver)
        space = space_of(where)
        order = self._order(space, isinstance(where, int))
        hidden = self.log.hidden[:, order]
        if model.kind == "whole":
            return whole(space, float(hidden[:, 0].mean()))
        if model.kind == "rates":
            return mcar(space, hidden.mean(axis=0))
        if model.kind == "patterns":
            return pattern_shares(space, exact_shares(pattern_counts(hidden)))
        if model.kind == "by":
            i = [self.log.names[j] for j in order].index(model.driver or "")
            column = self.log.columns[order[i]]
            numbers = numbers_of(column, space.sizes[i])
            each, missing = conditional_rates(np.delete(hidden, i, axis=1), column)
            rates = {number: rate for number, rate in zip(numbers, each, strict=True) if rate is not None}
            return by_seen(space, i, float(hidden[:, i].mean()), rates, missing)
        if model.kind == "after":
            return self._after(where, hidden, n_actions)
        each_has_one = model.kind == "bursts-each"
        return bursts(space, *burst_arguments(model.kind, self.chains[model.kind], order), per_component=each_has_one)

    def _after(self, where: Where, hidden: Any, n_actions: int | None) -> Mechanism:
        action: Column = self.log.action or Column("action", np.zeros(0, dtype=np.int64), ())
        names = where.action_names if isinstance(where, TabularMDP) else ()
        most = where.n_actions if isinstance(where, TabularMDP) else n_actions
        if most is None:
            raise ValueError("rates by action need a world, or n_actions: how many actions there are")
        numbers = numbers_of(action, most, names)
        each, missing = conditional_rates(hidden, action)
        rates = {number: rate for number, rate in zip(numbers, each, strict=True) if rate is not None}
        return after_actions(space_of(where), most, rates, missing)

    def _model(self, kind: str | None, driver: str | None) -> Model:
        if kind is None:
            kind = self.best.kind if driver is None else "by"
        one_of("kind", kind, KINDS)
        fitted = [model for model in self.models if model.kind == kind]
        if not fitted:
            raise ValueError(f"{kind} was not fitted: {_NEEDS[kind]}; there are {_listed(self.models)}")
        if driver is None:
            return fitted[0]
        found = [model for model in fitted if model.driver == driver]
        if not found:
            drivers = [model.driver for model in fitted if model.driver]
            known = f"; there are {', '.join(drivers)}" if drivers else f": {kind} has none"
            raise ValueError(f"no driver is called {shown(driver)}{nearest(driver, drivers)}{known}")
        return found[0]

    def _order(self, space: Space, unnamed: bool) -> list[int]:
        """Which component of the log each component of a space is."""
        names = self.log.names
        if space.d != len(names):
            raise ValueError(f"the log has {len(names)} components, {', '.join(names)}; the space has {space.d}")
        if set(names) == set(space.names):
            return [names.index(name) for name in space.names]
        plain = tuple(f"x{j}" for j in range(space.d))
        if unnamed or plain in (space.names, names):
            return list(range(space.d))
        raise ValueError(
            f"the log has the components {', '.join(names)}, the space {', '.join(space.names)}; name them alike"
        )

    def __repr__(self) -> str:
        return f"FittedMissingness({counted(self.log.n, 'row')}, {', '.join(self.log.names)}; best: {_name(self.best)})"

    def __str__(self) -> str:
        lines = [f"{one.component}: missing {one.rate:.3f} ± {one.se:.3f}" for one in self.rates]
        return "\n".join([repr(self), *lines, self.verdict, CANNOT_KNOW])

    def _strongest(self) -> tuple[RateGiven, ...]:
        """The rates by the driver with the least p-value."""
        tests = [test for test in self.tests if test.p is not None]
        driver = min(tests, key=lambda test: test.p or 0.0).driver if tests else None
        return tuple(row for row in self.by if row.driver == driver)

    def _repr_html_(self) -> str:
        parts = []
        for name, title in _TITLES.items():
            rows = self._strongest() if name == "by" else getattr(self, name)
            if rows:
                cells = [list(row) if isinstance(row, tuple) else list(vars(row).values()) for row in rows]
                head = [key.replace("_", " ") for key in (getattr(rows[0], "_fields", None) or vars(rows[0]))]
                parts += [display.paragraph(title), display.table(head, cells, most=8)]
        title = f"Missingness in {counted(self.log.n, 'row')} of {', '.join(self.log.names)}"
        return display.card(title, display.paragraph(self.verdict), *parts, display.paragraph(CANNOT_KNOW))


_TITLES = {
    "rates": "How often each component is missing:",
    "by": "How often by the value of what matters most:",
    "patterns": "Which are missing together:",
    "persistence": "How often again:",
    "models": "Models, the best first:",
}

_NEEDS = {
    "rates": "it needs a component",
    "whole": "some rows lose only a part, or there is one component",
    "by": "it needs a component with at least two values, whole numbers or texts, beside another one",
    "after": "it needs the action of each row",
    "patterns": "it needs several components, and not too many patterns",
    "bursts": "it needs a component that is missing in some rows and seen in others",
    "bursts-each": "it needs two to eight components, of which some are missing in some rows only",
}


def _name(model: Model) -> str:
    return model.kind if model.driver is None else f"{model.kind} {model.driver}"


def _listed(fitted: Sequence[Model]) -> str:
    return ", ".join(dict.fromkeys(model.kind for model in fitted))


def _plain(key: str, value: Any) -> Any:
    """A value as a cell of a frame."""
    if key == "df":
        return None if value is None else list(value)
    return value


def from_masks(
    frame: Any, *, components: Sequence[str] | None = None, masked: bool = False, sequence: Any = None,
    order: Any = None, action: Any = None, first_observed: bool = False,
) -> FittedMissingness:  # fmt: skip
    """Fit how values go missing in a log, with standard errors and a test against MCAR.

    Parameters
    ----------
    frame
        A frame of polars or pandas, a mapping of columns, or an array ``[row, component]``. Missing is null, None or
        NaN; in an array of whole numbers, also any number below 0, as in `Trace`.
    components
        The columns that are components; all that are not named below if not given.
    masked
        Whether the components are masks already: 1 for missing, 0 for seen. Then nothing can be fitted by value.
    sequence
        Column (or columns) that say whose row it is: the participant, the episode. One sequence if not given. An array
        of values will do too, also for the next two.
    order
        Column with the order in time within a sequence; that of the rows if not given.
    action
        Column with the action that led to the row; null where there was none.
    first_observed
        Leave out the first row of every sequence, because it is always complete, as in lacuna's own environments.

    Notes
    -----
    Rows of one sequence depend on each other. Standard errors and tests therefore come from sums over blocks of
    consecutive rows. The number of blocks is about ¾ of the square root of the number of rows, between 20 and 200, or
    the number of sequences if that is larger.

    The test against MCAR compares, for every pair of components, how often one is missing at the values of the other,
    over the rows in which that is seen; and the same for the action. `FittedMissingness.p_mcar` puts all of them
    together. Each test compares rows with the same past masks, as far as the last row and a hidden chain tell them: an
    agent acts on what it sees, so past masks are related to the state too. Bursts and patterns are MCAR too, and are
    not held against it. A test can find that a component goes missing by the value of *another*. Nothing can find
    that it goes missing by its own value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mood, sleep = rng.integers(0, 3, 2000), rng.integers(0, 2, 2000).astype(float)
    >>> sleep[rng.random(2000) < 0.1 + 0.3 * mood] = np.nan
    >>> fit = from_masks({"mood": mood, "sleep": sleep})
    >>> fit
    FittedMissingness(2,000 rows, mood, sleep; best: by mood)
    >>> [(row.value, round(row.rate, 2), round(row.se, 2)) for row in fit.by if row.driver == "mood"]
    [(0, 0.09, 0.01), (1, 0.41, 0.02), (2, 0.72, 0.02)]
    >>> made = fit.mechanism(Space((3, 2), ("mood", "sleep")))
    >>> made.label, made.name[:14]
    ('MAR', 'by:mood=0.0,0=')
    """
    log = read_log(
        frame, components=components, masked=masked, sequence=sequence, order=order, action=action,
        first_observed=first_observed,
    )  # fmt: skip
    with extras_named():
        chains = fit_chains(log)
        return FittedMissingness(
            log, tuple(rate_rows(log)), tuple(rates_given(log)), tuple(pattern_rows(log)), tuple(persistence_rows(log)),
            tuple(burst_rows(log, chains)), tuple(driver_tests(log, chains)), models(log, chains), chains,
        )  # fmt: skip
