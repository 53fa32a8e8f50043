"""``NAME[:VARIANT][,key=value ...]``: what it sets up, and what it says when it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from calmfed.errors import UserError
from calmfed.methods import AtHome, Method, methods, register_method, registry, set_up
from calmfed.rules import Calm, Rule, Uniform

BUILT_IN = {"local", "uniform", "hard", "calm", "confidence", "visit"}


def test_the_built_in_methods_are_there_with_a_line_each() -> None:
    known = methods()
    assert set(known) >= BUILT_IN
    assert list(known) == sorted(known)
    for name in BUILT_IN:
        assert known[name].summary


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("calm", {}),
        ("local,ce=prior", {"ce": "prior"}),
        ("calm,kd_weight=0.5,epochs=2", {"kd_weight": 0.5, "epochs": 2}),
        ("visit", {"ce": "prior", "kd_weight": 0.3}),
        ("visit:calm", {"ce": "prior", "kd_weight": 0.3}),
        ("visit,ce=plain", {"ce": "plain", "kd_weight": 0.3}),
    ],
)
def test_the_recipe_that_a_method_asks_for(text: str, recipe: Mapping[str, Any]) -> None:
    assert set_up(text).recipe == recipe


def test_only_what_the_notation_gave_was_asked_for() -> None:
    assert set_up("visit").asked == frozenset()
    assert set_up("visit,ce=prior").asked == {"ce"}
    assert set_up("calm,tau=0.2,lr=0.1").asked == {"lr"}


def test_blanks_do_not_matter_and_the_text_is_kept() -> None:
    setup = set_up(" calm:12 , tau = 0.2 ")
    assert setup.method == set_up("calm:12,tau=0.2").method
    assert setup.text == " calm:12 , tau = 0.2 "


def test_the_last_checkpoint_speaks_for_visit_and_the_best_for_the_others() -> None:
    headlines = {name: set_up(name).method.headline for name in BUILT_IN}
    assert {name for name, headline in headlines.items() if headline == "last"} == {"visit"}
    assert set(headlines.values()) == {"best", "last"}


@pytest.mark.parametrize("value", ["false", "False", "0", "no", "off"])
def test_switches_are_read_as_words_or_numbers(value: str) -> None:
    assert set_up(f"visit,merge={value}").method == set_up("visit,merge=false").method
    assert set_up(f"visit,merge={value}").method != set_up("visit").method


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown method '': known: calm, "),
        ("clam", "unknown method 'clam': did you mean 'calm'"),
        ("calm:14", "method 'calm' has no variant '14': did you mean '1.*known: 1, 12, 123"),
        ("calm:21", "method 'calm' has no variant '21'"),
        ("visit:clam", "method 'visit' has no variant 'clam': did you mean 'calm'"),
        ("local:1", "method 'local' has no variants, got '1'"),
        ("calm,taau=1", "method 'calm' has no setting 'taau': did you mean 'tau'"),
        ("visit,tau=1", "method 'visit' has no setting 'tau'"),
        ("local,temperature=1", "method 'local' has no setting 'temperature'"),
        ("calm,rule=1", "method 'calm' has no setting 'rule'"),
        ("calm,teacher_batch=1", "method 'calm' has no setting 'teacher_batch'"),
        ("calm,tau", r"'tau' is not of the form key=value \(a method is NAME"),
        ("calm,tau=", "'tau=' is not of the form key=value"),
        ("calm,=1", "'=1' is not of the form key=value"),
        ("calm,", "'' is not of the form key=value"),
        ("calm,tau=much", "method 'calm,tau=much': tau=much: input should be a valid number"),
        ("calm,epochs=1.5", "epochs=1.5: input should be a valid integer"),
        ("visit,merge=maybe", "merge=maybe: input should be a valid boolean"),
        ("calm,tau=0", "method 'calm,tau=0': tau must be above zero, got 0"),
        ("calm,temperature=inf", "temperature must be a finite number above zero, got inf"),
        ("calm,floor=2", r"floor must lie in \[0, 1\], got 2"),
        ("hard,kappa=-1", "kappa must be .* at least zero, got -1"),
        ("local,ce=prio", "unknown ce 'prio': did you mean 'prior'"),
        ("local,epochs=0", "epochs must be at least 1, got 0"),
        ("local,augment=flip", "unknown augmentation 'flip'"),
    ],
)
def test_what_cannot_be_set_up_is_named(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        set_up(text)


@pytest.fixture
def _names_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))


@dataclass(frozen=True)
class Patient(AtHome):
    """A user's own method with a setting of its own."""

    patience: int = 3
    rule: Rule | None = field(default_factory=Calm)


@pytest.mark.usefixtures("_names_restored")
def test_ones_own_method_has_its_settings_its_rules_and_the_recipes() -> None:
    assert register_method("patient")(Patient) is Patient
    register_method("patient")(Patient)  # a module that is loaded again
    setup = set_up("patient,patience=5,tau=0.3,lr=0.1")
    assert setup.method == Patient(rule=Calm(tau=0.3), patience=5)
    assert setup.recipe == {"lr": 0.1}


@pytest.mark.usefixtures("_names_restored")
def test_a_name_that_is_taken_is_refused_even_to_a_class_of_the_same_name() -> None:
    @dataclass(frozen=True)
    class Local(Method):
        rule: Rule | None = field(default_factory=Uniform)

    Local.__qualname__ = "Local"
    with pytest.raises(UserError, match=r"'local' already: calmfed\.methods\.local\.Local"):
        register_method("local")(Local)
    assert methods()["local"] is not Local


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("calm:12,eta=0.5", "fixes eta at 0"),  # it would switch gate 3 on again
        ("calm:3,tau=0.1", "fixes tau at inf"),
        ("calm:", "has no variant ''"),
        ("calm,tau=1,tau=2", "gives a setting twice"),
        ("calm,batch=1", "batch must be at least 2"),
    ],
)
def test_slips_of_the_notation_are_not_passed_over(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        set_up(text)
