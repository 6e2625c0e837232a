"""Studies: thousands of runs described in a file and kept in a store; they can be stopped and continued."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lacuna.exports import exported

if TYPE_CHECKING:
    from lacuna.study.runner import Progress as Progress
    from lacuna.study.runner import run_studies as run_studies
    from lacuna.study.selection import COLUMNS as COLUMNS
    from lacuna.study.selection import FIGURES as FIGURES
    from lacuna.study.selection import HYPER_PARAMETERS as HYPER_PARAMETERS
    from lacuna.study.selection import MEASURES as MEASURES
    from lacuna.study.selection import METHOD as METHOD
    from lacuna.study.selection import Columns as Columns
    from lacuna.study.selection import Draw as Draw
    from lacuna.study.selection import choose as choose
    from lacuna.study.selection import chosen_runs as chosen_runs
    from lacuna.study.selection import with_open_episode as with_open_episode
    from lacuna.study.statistics import LEVEL as LEVEL
    from lacuna.study.statistics import ROUNDING as ROUNDING
    from lacuna.study.statistics import Interval as Interval
    from lacuna.study.statistics import holm as holm
    from lacuna.study.statistics import mean_interval as mean_interval
    from lacuna.study.statistics import paired_difference as paired_difference
    from lacuna.study.statistics import paired_p_value as paired_p_value
    from lacuna.study.statistics import paired_ratio as paired_ratio
    from lacuna.study.store import SCHEMA as SCHEMA
    from lacuna.study.store import export as export
    from lacuna.study.summaries import thinned as thinned
    from lacuna.study.summaries import with_intervals as with_intervals
    from lacuna.study.watching import shown_on_terminal as shown_on_terminal
else:
    __all__, __getattr__, __dir__ = exported(__name__)
