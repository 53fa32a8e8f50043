"""Methods by name, and the notation ``NAME[:VARIANT][,key=value ...]`` that sets one up.

``calm:12,tau=0.2`` is CALM with gates 1 and 2 at another agreement scale; ``local,ce=prior`` is
local training on prior-corrected cross-entropy; ``visit,merge=false`` travels without merging.
A key is a setting of the method, of its rule, or of the recipe.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from calmfed.errors import UserError, nearest
from calmfed.methods.base import Method
from calmfed.recipe import Recipe

M = TypeVar("M", bound=type[Method])

_METHODS: dict[str, type[Method]] = {}


@dataclass(frozen=True)
class MethodSetup:
    """A method as it was asked for.

    Attributes:
        text: The notation it was asked for by.
        method: The method, set up.
        recipe: What it or the notation changes in the general recipe.
        asked: The keys of ``recipe`` that the notation gave, which no general setting overrides.
    """

    text: str
    method: Method
    recipe: Mapping[str, Any]
    asked: frozenset[str]


def register_method(name: str) -> Callable[[M], M]:
    """Register a `Method` class under a name; it must be a frozen dataclass with defaults."""
    if not isinstance(name, str) or not name or set(name) & set(" ,:"):
        raise UserError(
            f'a method needs a name, as in @register_method("mine"), without blank, comma and '
            f"colon; got {name!r}"
        )

    def register(method: M) -> M:
        if not (isinstance(method, type) and issubclass(method, Method) and is_dataclass(method)):
            raise UserError(f"method {name!r} must be a dataclass that inherits from Method")
        for held in fields(method):
            if held.default is MISSING and held.default_factory is MISSING:
                raise UserError(f"method {name!r}: its setting {held.name} needs a default")
        if not method.__module__.startswith("calmfed.methods."):
            methods()  # so that a name which is taken is refused here
        known = _METHODS.get(name, method)
        if (known.__module__, known.__qualname__) != (method.__module__, method.__qualname__):
            taken = f"{known.__module__}.{known.__qualname__}"
            raise UserError(f"there is a method {name!r} already: {taken}")
        _METHODS[name] = method
        return method

    return register


def methods() -> dict[str, type[Method]]:
    """All registered methods by name."""
    package = importlib.import_module("calmfed.methods")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"calmfed.methods.{module.name}")
    return dict(sorted(_METHODS.items()))


def set_up(text: str) -> MethodSetup:
    """Set up a method from its notation, or say what is wrong with it."""
    head, *settings = (part.strip() for part in text.split(","))
    name, colon, variant = head.partition(":")
    known = methods()
    if name not in known:
        raise UserError(f"unknown method {name!r}: {nearest(name, known)}")
    method = known[name]()
    pairs = [_pair(setting, text) for setting in settings]
    given = dict(pairs)
    if len(given) < len(pairs):
        raise UserError(f"method {text!r} gives a setting twice")
    plain = getattr(method, "rule", None)
    if colon:
        if variant not in method.variants:
            raise UserError(
                f"method {name!r} has no variant {variant!r}: {nearest(variant, method.variants)}"
                if method.variants
                else f"method {name!r} has no variants, got {variant!r}"
            )
        method = method.variant(variant)
    own = {f.name for f in fields(method)} - {"rule"}
    rule = getattr(method, "rule", None)
    of_rule = {f.name for f in fields(rule)} if is_dataclass(rule) else set()
    of_recipe = {f.name for f in fields(Recipe)} - {"teacher_batch"}
    for key in given:
        if key not in own | of_rule | of_recipe:
            raise UserError(
                f"method {head!r} has no setting {key!r}: {nearest(key, own | of_rule | of_recipe)}"
            )
        if type(rule) is type(plain) and getattr(rule, key, None) != getattr(plain, key, None):
            raise UserError(f"method {head!r} fixes {key} at {getattr(rule, key):g}")
    try:
        if mine := _typed(type(method), given, own):
            method = replace(method, **mine)
        if rule is not None and (for_rule := _typed(type(rule), given, of_rule)):
            method = replace(method, rule=replace(rule, **for_rule))  # type: ignore[call-arg]  # a field of those methods that have one
        asked = _typed(Recipe, given, of_recipe)
        Recipe(**asked)
    except ValueError as error:  # out of a setting's range
        raise UserError(f"method {text!r}: {error}") from None
    return MethodSetup(text, method, {**method.recipe, **asked}, frozenset(asked))


def _pair(setting: str, text: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals or not key or not value:
        raise UserError(
            f"method {text!r}: {setting!r} is not of the form key=value "
            "(a method is NAME[:VARIANT][,key=value ...])"
        )
    return key.strip(), value.strip()


def _typed(owner: type, given: Mapping[str, str], keys: set[str]) -> dict[str, Any]:
    """The given settings that belong to a dataclass, as values of its fields' types."""
    hints = get_type_hints(owner)
    typed = {}
    for key in given.keys() & keys:
        try:
            typed[key] = TypeAdapter(hints[key]).validate_strings(given[key])
        except ValidationError as error:
            raise UserError(f"{key}={given[key]}: {error.errors()[0]['msg'].lower()}") from None
    return typed
