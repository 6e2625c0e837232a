"""Contracts that you can run on your own worlds, mechanisms and agents; a failure names the likely cause."""

from lacuna.agent.own_method import AgentLike
from lacuna.checks.agents import check_agent
from lacuna.checks.chance import FALSE_ALARM, CheckFailedError
from lacuna.checks.mechanisms import check_mechanism
from lacuna.checks.worlds import check_world

__all__ = ["FALSE_ALARM", "AgentLike", "CheckFailedError", "check_agent", "check_mechanism", "check_world"]
