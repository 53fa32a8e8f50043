"""Configurations: the protocol's defaults, and reading what users write."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from calmfed.config import (
    KEYS,
    Config,
    layered,
    parse,
    preset_settings,
    read_toml,
    read_value,
)
from calmfed.errors import UserError
from calmfed.recipe import Recipe


def test_the_defaults_are_the_protocol_at_full_scale() -> None:
    config = Config()
    assert (config.clients, config.active, config.rounds) == (50, 10, 300)
    assert (config.partition, config.dirichlet_alpha, config.min_samples) == ("dirichlet", 0.3, 10)
    assert config.models == ("resnet18", "resnet18_half", "cnn6")
    assert (config.width, config.shrink, config.val_fraction) == (1.0, 1, 0.1)
    assert (config.eval_every, config.eval_samples) == (10, 2000)
    assert config.recipe() == Recipe(
        epochs=5,
        batch=64,
        lr=0.01,
        momentum=0.9,
        weight_decay=5e-4,
        kd_weight=0.7,
        ce="plain",
        augment="none",
    )


def test_text_is_read_as_the_type_of_its_key() -> None:
    config = parse(
        {
            "data": "svhn",
            "clients": "20",
            "dirichlet_alpha": "0.1",
            "train_samples": "10000",
            "ce": "prior",
            "models": "cnn6, resnet18",
        }
    )
    assert config == Config(
        data="svhn",
        clients=20,
        dirichlet_alpha=0.1,
        train_samples=10_000,
        ce="prior",
        models=("cnn6", "resnet18"),
    )
    assert type(config.clients) is int


@pytest.mark.parametrize("models", ["cnn6", "[cnn6]", ["cnn6"], ("cnn6",)])
def test_models_are_written_in_any_of_the_usual_ways(models: Any) -> None:
    assert parse({"models": models}).models == ("cnn6",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cleints": 5}, "unknown setting 'cleints': did you mean 'clients'"),
        ({"tau": 0.1}, "unknown setting 'tau': it is a setting of a method: .*'calm,tau=...'"),
        ({"clients": "many"}, "clients: input should be a valid integer, .*, got 'many'"),
        ({"clients": 2.5}, "clients: input should be a valid integer, .*, got 2.5"),
        ({"lr": "fast"}, "lr: input should be a valid number, .*, got 'fast'"),
        ({"models": 3}, "models: .*, got 3"),
        ({"models": []}, "models must name at least one architecture"),
        ({"clients": 0, "active": 0}, "clients must be at least 1, got 0"),
        ({"active": 0}, "active must be at least 1, got 0"),
        ({"clients": 5, "active": 6}, "active must be at most the number of clients 5, got 6"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"shrink": 0}, "shrink must be at least 1, got 0"),
        ({"train_samples": 0}, "train_samples must be at least 1, got 0"),
        ({"min_samples": 2}, "min_samples must be at least 3, got 2"),
        ({"eval_every": 0}, "eval_every must be at least 1, got 0"),
        ({"eval_samples": 0}, "eval_samples must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"adopt_tolerance": 1.1}, r"adopt_tolerance must lie in \[0, 1\], got 1.1"),
        ({"adopt_tolerance": "nan"}, r"adopt_tolerance must lie in \[0, 1\], got nan"),
    ],
)
def test_what_cannot_be_a_configuration_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "clam"}, "unknown method 'clam': did you mean 'calm'"),
        ({"ce": "prio"}, "unknown ce 'prio': did you mean 'prior'"),
        ({"lr": -1}, "lr must be .* at least zero, got -1"),
        ({"kd_weight": 2}, r"kd_weight must lie in \[0, 1\], got 2"),
        ({"augment": "flip"}, "unknown augmentation 'flip'"),
        ({"teacher_batch": 0}, "teacher_batch must be at least 1, got 0"),
    ],
)
def test_a_recipe_that_cannot_be_is_a_users_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(settings).recipe()


@pytest.mark.parametrize(
    ("settings", "ce", "kd_weight"),
    [
        ({"method": "calm"}, "plain", 0.7),
        ({"method": "local,ce=prior"}, "prior", 0.7),
        ({"method": "visit"}, "prior", 0.3),
        ({"method": "visit", "ce": "plain"}, "plain", 0.3),
        ({"method": "visit", "kd_weight": 0.5}, "prior", 0.5),
        ({"method": "visit,ce=plain", "ce": "prior"}, "plain", 0.3),
        ({"method": "visit,kd_weight=0.9", "kd_weight": 0.5}, "prior", 0.9),
        ({"method": "calm", "ce": "prior", "kd_weight": 0.0}, "prior", 0.0),
    ],
)
def test_a_general_setting_wins_over_a_methods_wish_and_its_notation_over_both(
    settings: dict[str, Any], ce: str, kd_weight: float
) -> None:
    recipe = Config(**settings).recipe()
    assert (recipe.ce, recipe.kd_weight) == (ce, kd_weight)


def test_every_setting_of_a_recipe_can_be_made_for_all_methods_or_for_one() -> None:
    config = Config(method="calm,epochs=2", epochs=7, batch=32, lr=0.2, momentum=0.5)
    config = replace(config, weight_decay=0.1, augment="crop", teacher_batch=8)
    assert config.recipe() == Recipe(2, 32, 0.2, 0.5, 0.1, 0.7, "plain", "crop", 8)


OTHER: dict[str, Any] = {
    "data": "svhn",
    "train_samples": 7,
    "public": True,
    "models": ("cnn6",),
    "partition": "iid",
    "method": "local",
    "ce": "plain",
    "kd_weight": 0.7,
    "augment": "crop",
}


def test_an_identity_is_of_all_settings() -> None:
    config = Config()
    assert config.identity() == Config().identity()
    identities = {config.identity()}
    for name in KEYS:
        value = OTHER[name] if name in OTHER else getattr(config, name) * 2 + 1
        if name == "adopt_tolerance":
            value = 0.25
        if name == "active":
            value = 11
        if name == "val_fraction":
            value = 0.2
        identities.add(replace(config, **{name: value}).identity())
    assert len(identities) == 1 + len(fields(Config))


def test_later_layers_win() -> None:
    assert layered({"seed": 1, "lr": 0.1}, {"seed": 2}) == {"seed": 2, "lr": 0.1}
    assert layered() == {}


def test_a_layers_settings_for_one_data_set_count_for_that_data_set_alone() -> None:
    lite = {"shrink": 2, "active": 10, "only": {"digits": {"shrink": 1}}}
    assert layered(lite, {"data": "svhn"}) == {"shrink": 2, "active": 10, "data": "svhn"}
    # digits is the data set that nobody named
    assert layered(lite) == {"shrink": 1, "active": 10}
    assert layered(lite, {"data": "digits", "shrink": 3})["shrink"] == 3
    assert layered({"data": "svhn"}, lite, {"data": "digits"})["shrink"] == 1


@pytest.mark.parametrize("layer", [{"roundz": 1}, {"only": {"digits": {"roundz": 1}}}])
def test_a_wrong_key_is_named_in_every_layer(layer: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="unknown setting 'roundz': did you mean 'rounds'"):
        layered({}, layer)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("0.5", 0.5),
        ("true", True),
        ("inf", float("inf")),
        ('["cnn6", "resnet18"]', ["cnn6", "resnet18"]),
        ('"calm"', "calm"),
        ("calm", "calm"),
        ("calm:12,tau=0.2", "calm:12,tau=0.2"),
        ("npz:my file.npz", "npz:my file.npz"),
        ("", ""),
    ],
)
def test_a_value_is_read_as_toml_or_as_text(text: str, value: Any) -> None:
    assert read_value(text) == value


def test_a_toml_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    with pytest.raises(UserError, match=r"there is no file .*study\.toml"):
        read_toml(path)
    path.write_text("seed = ")
    with pytest.raises(UserError, match=r"study\.toml is not valid TOML"):
        read_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"study\.toml cannot be read"):
        read_toml(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_toml(tmp_path)
    path.write_text("seed = 3")
    assert read_toml(path) == {"seed": 3}


def test_presets_are_configurations() -> None:
    paper = parse(layered(preset_settings("paper")))
    assert replace(paper, data="digits") == Config()
    lite = parse(layered(preset_settings("lite"), {"data": "cifar10"}))
    assert (lite.clients, lite.active, lite.rounds, lite.shrink) == (20, 10, 40, 2)
    digits = parse(layered(preset_settings("lite"), {"data": "digits"}))
    assert (digits.clients, digits.active, digits.shrink) == (10, 5, 1)


def test_a_preset_that_is_a_study_says_how_to_start_it() -> None:
    with pytest.raises(UserError, match=r"'quickstart' is a study: .*calmfed study quickstart"):
        preset_settings("quickstart")
    with pytest.raises(UserError, match="unknown preset 'papre': did you mean 'paper'"):
        preset_settings("papre")
