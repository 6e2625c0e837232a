"""Missingness for a vector environment as a whole: each sub-environment has its own mechanism state and stream."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from lacuna.agent.components import Env, components_of
from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.missingness.texts import parse
from lacuna.validation import of_kind
from lacuna.wrappers.cover import Cover, Display, Encoding, refuse_taken
from lacuna.wrappers.incoming import Incoming, Outside, bounds_of, kept_info
from lacuna.wrappers.missing import check_fit, first_action, n_actions_of, where_of


class VectorMissingObservation(VectorWrapper[Any, Any, Any, Any, Any]):
    """Hide components in each sub-environment of a vector environment.

    Sub-environment i sees exactly the masks of a single `MissingObservation` whose seed is that of the sub-environment:
    ``seed + i`` if ``reset`` was given one number. All three autoreset modes are handled. With resets in the same step
    the last observation of an episode (``infos["final_obs"]``) is covered too, and its mask is in
    ``infos["final_info"]``.

    Parameters
    ----------
    env
        A vector environment whose single observation is `Discrete`, `MultiDiscrete` or `Box`.
    mechanism, encoding, first_observed, truth, drop_info, outside
        As for `MissingObservation`.

    Examples
    --------
    >>> import gymnasium
    >>> envs = gymnasium.make_vec("FrozenLake-v1", num_envs=2)
    >>> envs = VectorMissingObservation(envs, "mcar:1.0")
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, *_, infos = envs.step(np.array([1, 1]))
    >>> observations, infos["mask"].tolist()
    (array([16, 16]), [[1], [1]])
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        mechanism: Mechanism | str,
        *,
        encoding: Encoding | None = None,
        first_observed: bool = True,
        truth: bool = False,
        drop_info: Sequence[str] = (),
        outside: Outside = "warn",
    ) -> None:
        of_kind("mechanism", mechanism, (Mechanism, str), "a Mechanism, or a text such as 'mcar:0.3'")
        super().__init__(env)
        space, actions = env.single_observation_space, env.single_action_space
        if isinstance(space, spaces.Tuple | spaces.Dict | spaces.MultiBinary):
            raise TypeError(
                f"the single observation is {type(space).__name__}; wrap each sub-environment in FactoredObservation"
            )
        components = components_of(space)
        example = _example(env)
        if isinstance(mechanism, str):
            mechanism = parse(mechanism, where_of(example, components), n_actions_of(actions))
        check_fit(mechanism, components, actions)
        if mechanism.delay:
            raise ValueError(
                f"the values of {mechanism.name} are late; wrap each sub-environment in MissingObservation"
            )
        self.mechanism = mechanism
        self._resets = str(getattr(env.metadata.get("autoreset_mode"), "value", "NextStep"))
        self._check_true_states(example)
        display = Display.of(components, encoding, (first_observed, truth, drop_info))
        self.encoding: Encoding = display.encoding
        # One for all: what one sub-environment was warned of is not said again of another.
        incoming = Incoming("VectorMissingObservation", bounds_of(space), mechanism.space.names, outside)
        self._covers = [
            Cover(mechanism, space, display, first_action=first_action(actions), incoming=incoming)
            for _ in range(env.num_envs)
        ]
        self.single_observation_space = self._covers[0].outer
        self.observation_space = batch_space(self._covers[0].outer, env.num_envs)
        self._shown: list[Any] = [None] * env.num_envs
        self._over = np.zeros(env.num_envs, dtype=np.bool_)

    def _check_true_states(self, example: Env | None) -> None:
        if self.mechanism.by != RateBy.TRUE:
            return
        if self._resets == "SameStep":
            raise ValueError(
                f"the rates of {self.mechanism.name} go by the true state, and a vector environment that resets in the "
                "same step does not tell the last one of an episode; wrap each sub-environment instead"
            )
        if example is None or not hasattr(example.unwrapped, "true_state"):
            raise ValueError(
                f"the rates of {self.mechanism.name} go by the true state; the sub-environments of {self.env} do not "
                "tell it as `true_state`"
            )

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes, in all sub-environments or in those of ``options["reset_mask"]``; seeds also start masks."""
        n = self.num_envs
        # The vector environment takes the entry out of its options.
        chosen = np.array((options or {}).get("reset_mask", np.ones(n, dtype=np.bool_)))
        observations, infos = self.env.reset(seed=cast("Any", seed), options=options)
        seeds = [seed + i for i in range(n)] if isinstance(seed, int | np.integer) else seed or [None] * n
        true, found = self._true_states(), self._kept(infos)
        for i, observation in enumerate(iterate(self.env.observation_space, observations)):
            if chosen[i]:
                start = seeds[i]
                if start is not None:
                    self._covers[i].restart(start)
                self._shown[i], about = self._covers[i].first(observation, {}, true[i])
                self._over[i] = False
                found = self._add_info(found, about, i)
        return self._batch(), found

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Let all sub-environments move, then hide."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        over = np.logical_or(terminated, truncated)
        true, found = self._true_states(), self._kept(infos)
        taken = list(iterate(self.env.action_space, actions))
        for i, observation in enumerate(iterate(self.env.observation_space, observations)):
            cover = self._covers[i]
            if self._resets == "SameStep" and over[i]:
                last, about = cover.later(infos["final_obs"][i], {}, 0, taken[i])
                found = self._add_info(found, {"final_obs": last, "final_info": about}, i)
                self._shown[i], about = cover.first(observation, {}, 0)
            elif self._resets == "NextStep" and self._over[i]:
                self._shown[i], about = cover.first(observation, {}, true[i])
            else:
                self._shown[i], about = cover.later(observation, {}, true[i], taken[i])
            found = self._add_info(found, about, i)
        self._over = over
        return self._batch(), rewards, terminated, truncated, found

    def _true_states(self) -> Sequence[int]:
        if self.mechanism.by != RateBy.TRUE:
            return [0] * self.num_envs
        return [int(state) for state in cast("Any", self.env.unwrapped).get_attr("true_state")]

    def _kept(self, infos: dict[str, Any]) -> dict[str, Any]:
        """The infos of the vector environment without what is left out, and without the last observations."""
        dropped = {"final_obs", *self._covers[0].display.drop_info}
        dropped |= {f"_{key}" for key in dropped}
        kept = kept_info(infos, dropped)
        if "final_info" in kept:
            kept["final_info"] = kept_info(kept["final_info"], dropped)
        refuse_taken({*kept, *kept.get("final_info", ())})
        return kept

    def _batch(self) -> Any:
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return deepcopy(concatenate(space, self._shown, empty))


def _example(env: VectorEnv[Any, Any, Any]) -> Env | None:
    """A sub-environment, for what it knows of its world; None if there are none."""
    found = getattr(env.unwrapped, "envs", None)
    if found:
        return cast("Env", found[0])
    # Sub-environments in other processes: asking one for what it does not have would shut it down.
    makers = getattr(env.unwrapped, "env_fns", None)
    return cast("Env", makers[0]()) if makers else None
