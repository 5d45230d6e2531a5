"""Function calling against JSON-schema tools: task generator, grader and tool results."""

from postgrad.envs.function_calling.environment import FunctionCalling
from postgrad.envs.function_calling.grader import grade

__all__ = ["FunctionCalling", "grade"]
