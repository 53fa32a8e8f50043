"""The whole configuration."""

from dataclasses import dataclass, fields

from calmfed.config import Config
from calmfed.study import wording
from calmfed.study.subject import Subject


@dataclass(frozen=True)
class Settings:
    """The section.

    Attributes:
        shared: Settings that all runs share: name and value.
        varying: Settings that differ between runs: name and values.
        recipes: By method: its name, its cross-entropy, and the share of its teachers, if any.
    """

    shared: tuple[tuple[str, str], ...]
    varying: tuple[tuple[str, str], ...]
    recipes: tuple[tuple[str, str, str], ...]


def settings(subject: Subject) -> Settings:
    """Every setting of every run."""
    told = {field.name: subject.values(field.name) for field in fields(Config)}
    configs = {entry.label: entry.config for entry in subject.entries}
    return Settings(
        shared=tuple(
            (name, wording.setting(values[0])) for name, values in told.items() if len(values) == 1
        ),
        varying=tuple(
            (name, "; ".join(wording.setting(value) for value in values))
            for name, values in told.items()
            if len(values) > 1
        ),
        recipes=tuple((label, *_recipe(config)) for label, config in configs.items()),
    )


def _recipe(config: Config) -> tuple[str, str]:
    """What a setting left to the method's preference came to."""
    recipe = config.recipe()
    alone = getattr(config.method_setup().method, "rule", ...) is None
    return recipe.ce, wording.DASH if alone else f"{recipe.kd_weight:g}"
