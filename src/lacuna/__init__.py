"""lacuna: online reinforcement learning when parts of the state go missing.

Importing lacuna registers its worlds with Gymnasium (``lacuna/Lake-v0`` and so on). Everything heavier is imported when
it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lacuna.exports import exported
from lacuna.version import __version__ as __version__
from lacuna.worlds.registry import make_world as make_world

if TYPE_CHECKING:
    from lacuna.agent.agent import Agent as Agent
    from lacuna.agent.binning import Binning as Binning
    from lacuna.agent.methods import METHODS as METHODS
    from lacuna.agent.methods import YARDSTICKS as YARDSTICKS
    from lacuna.agent.own_method import AgentLike as AgentLike
    from lacuna.agent.own_method import OwnMethod as OwnMethod
    from lacuna.agent.settings import DEFAULT as DEFAULT
    from lacuna.agent.settings import UNPLANNED as UNPLANNED
    from lacuna.agent.settings import Settings as Settings
    from lacuna.checks.agents import check_agent as check_agent
    from lacuna.checks.mechanisms import check_mechanism as check_mechanism
    from lacuna.checks.worlds import check_world as check_world
    from lacuna.kernels.space import Space as Space
    from lacuna.missingness.fitting.fitted import FittedMissingness as FittedMissingness
    from lacuna.missingness.fitting.fitted import from_masks as from_masks
    from lacuna.missingness.mechanism import Mechanism as Mechanism
    from lacuna.report.compare import compare as compare
    from lacuna.report.comparison import Comparison as Comparison
    from lacuna.report.replay import Replay as Replay
    from lacuna.report.replay import replay as replay
    from lacuna.run.play import play as play
    from lacuna.run.problems import Problem as Problem
    from lacuna.run.repetitions import run_trial as run_trial
    from lacuna.run.repetitions import run_trials as run_trials
    from lacuna.run.run import Run as Run
    from lacuna.study.engines import Local as Local
    from lacuna.study.runner import run_study as run_study
    from lacuna.study.spec import Study as Study
    from lacuna.study.store import Store as Store
    from lacuna.trial.engine.trial import Trial as Trial
    from lacuna.trial.file.trial_file import TrialFile as TrialFile
    from lacuna.worlds.lake import Lake as Lake
    from lacuna.worlds.mdp.solve import evaluate as evaluate
    from lacuna.worlds.mdp.solve import solve as solve
    from lacuna.worlds.mdp.tabular import TabularMDP as TabularMDP
    from lacuna.worlds.mdp.tabular_env import TabularEnv as TabularEnv
    from lacuna.wrappers.binned import BinnedObservation as BinnedObservation
    from lacuna.wrappers.carried import CarriedObservation as CarriedObservation
    from lacuna.wrappers.delayed import DelayedObservation as DelayedObservation
    from lacuna.wrappers.factored import FactoredObservation as FactoredObservation
    from lacuna.wrappers.imputed import ImputedObservation as ImputedObservation
    from lacuna.wrappers.missing import MissingObservation as MissingObservation
    from lacuna.wrappers.noisy import NoisyObservation as NoisyObservation
    from lacuna.wrappers.vector import VectorMissingObservation as VectorMissingObservation
else:
    __all__, __getattr__, __dir__ = exported(__name__)
