"""`local`: nobody helps. The line that every exchange of knowledge has to beat."""

from dataclasses import dataclass

from calmfed.methods.base import AtHome
from calmfed.methods.registry import register_method


@register_method("local")
@dataclass(frozen=True)
class Local(AtHome):
    """Each active client trains on its own labels alone."""

    summary = "nobody helps: each client trains on its own labels"
