"""Environments with a verifiable reward: tasks, a grader, tool results, rollouts recorded as traces."""

from postgrad.envs.environment import ENVIRONMENTS, Environment, load_environment, training_tasks
from postgrad.envs.gold import GoldActor
from postgrad.envs.rollouts import rollout

__all__ = ["ENVIRONMENTS", "Environment", "GoldActor", "load_environment", "rollout", "training_tasks"]
