"""Methods: one a file; each plans which lessons a round consists of."""

from calmfed.methods.base import AtHome, Commons, Merge, Method, Plan, Round
from calmfed.methods.registry import MethodSetup, methods, register_method, set_up

__all__ = [
    "AtHome",
    "Commons",
    "Merge",
    "Method",
    "MethodSetup",
    "Plan",
    "Round",
    "methods",
    "register_method",
    "set_up",
]
