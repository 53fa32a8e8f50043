"""Methods: one a file; each plans which lessons a round consists of."""

from calmfed.methods.base import AtHome, Merge, Method, Plan, Round
from calmfed.methods.registry import MethodSetup, methods, register_method, set_up

__all__ = [
    "AtHome",
    "Merge",
    "Method",
    "MethodSetup",
    "Plan",
    "Round",
    "methods",
    "register_method",
    "set_up",
]
