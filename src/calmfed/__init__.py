"""calmfed: machines with private data and unlike models teach each other, with no server.

The names below load when they are first used, so that the command line answers without torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "agreement": "gates",
    "agreement_target": "gates",
    "consensus": "gates",
    "disagreement": "gates",
    "disagreement_gate": "gates",
    "label_gate": "gates",
    "soften": "gates",
    "Calm": "rules",
    "ConfidenceWeighted": "rules",
    "HardFilter": "rules",
    "Judgement": "rules",
    "Rule": "rules",
    "Uniform": "rules",
    "distillation_loss": "loss",
    "register_model": "models",
    "register_dataset": "data",
    "from_arrays": "data",
    "register_method": "methods",
    "Config": "config",
    "UserError": "errors",
    "run": "simulate",
    "load_run": "simulate",
}

if TYPE_CHECKING:
    from calmfed.config import Config
    from calmfed.data import from_arrays, register_dataset
    from calmfed.errors import UserError
    from calmfed.gates import (
        agreement,
        agreement_target,
        consensus,
        disagreement,
        disagreement_gate,
        label_gate,
        soften,
    )
    from calmfed.loss import distillation_loss
    from calmfed.methods import register_method
    from calmfed.models import register_model
    from calmfed.rules import Calm, ConfidenceWeighted, HardFilter, Judgement, Rule, Uniform
    from calmfed.simulate import load_run, run

__all__ = [
    "Calm",
    "ConfidenceWeighted",
    "Config",
    "HardFilter",
    "Judgement",
    "Rule",
    "Uniform",
    "UserError",
    "agreement",
    "agreement_target",
    "consensus",
    "disagreement",
    "disagreement_gate",
    "distillation_loss",
    "from_arrays",
    "label_gate",
    "load_run",
    "register_dataset",
    "register_method",
    "register_model",
    "run",
    "soften",
]


def __getattr__(name: str) -> Any:  # PEP 562
    if name not in _HOMES:
        raise AttributeError(f"module 'calmfed' has no attribute {name!r}")
    return getattr(importlib.import_module(f"calmfed.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
