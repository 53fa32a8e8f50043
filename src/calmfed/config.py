"""Everything that decides a federation's result, as one frozen dataclass; and reading it.

pydantic only parses files and flags into it. What is not here (how many worker processes, where
files go) must not change a result.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from calmfed import presets
from calmfed.client import ADOPT_TOLERANCE
from calmfed.data.partition import KINDS
from calmfed.errors import UserError, nearest
from calmfed.methods import MethodSetup, set_up
from calmfed.models import ModelSpec, check_name
from calmfed.recipe import Recipe

MAX_THREADS = 1024
"""More is a slip of the keyboard."""


@dataclass(frozen=True)
class Config:
    """One federation. The defaults are the protocol at full scale (docs/reference/config.md).

    Attributes:
        data: A data set's name, or ``npz:PATH``.
        train_samples: At most so many training samples, drawn stratified; None takes all.
        public: Whether public samples are set aside; None means: if the method reads them.
        shrink: Each side divided by this, by the means of squares.
        clients: N, how many there are.
        active: K, how many take part in a round; at most N.
        rounds: R.
        partition: ``"dirichlet"``, ``"iid"`` or ``"shards"``.
        dirichlet_alpha: Concentration of the Dirichlet partition.
        classes_per_client: Classes a client holds under ``"shards"``.
        min_samples: The least samples a client holds.
        val_fraction: Of a client's samples, set aside for its own validation.
        models: Architectures, given to the clients in turn.
        width: Factor on their channels.
        method: ``NAME[:VARIANT][,key=value ...]``.
        epochs, batch, lr, momentum, weight_decay, augment, teacher_batch: See `Recipe`.
        ce: ``"plain"`` or ``"prior"``; None is what the method prefers.
        kd_weight: alpha of Eq. 10; None is what the method prefers.
        adopt_tolerance: See `Client`.
        eval_every: Rounds between two measurements of global accuracy.
        eval_samples: Of the test set, in those measurements; at the end it is all of it.
        seed: Of every random stream.
        threads: torch's threads in each process; they change the last bits.
    """

    data: str = "digits"
    train_samples: int | None = None
    public: bool | None = None
    shrink: int = 1
    clients: int = 50
    active: int = 10
    rounds: int = 300
    partition: str = "dirichlet"
    dirichlet_alpha: float = 0.3
    classes_per_client: int = 2
    min_samples: int = 10
    val_fraction: float = 0.1
    models: tuple[str, ...] = ("resnet18", "resnet18_half", "cnn6")
    width: float = 1.0
    method: str = "calm"
    epochs: int = 5
    batch: int = 64
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    ce: str | None = None
    kd_weight: float | None = None
    augment: str = "none"
    adopt_tolerance: float = ADOPT_TOLERANCE
    eval_every: int = 10
    eval_samples: int = 2000
    seed: int = 0
    threads: int = 1
    teacher_batch: int = 512

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Config).items():
            if not _fits(getattr(self, name), hint):
                raise UserError(f"{name} must be {_in_words(hint)}, got {getattr(self, name)!r}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"{name} must be at least {least}, got {value}")
        if self.active > self.clients:
            raise UserError(
                f"active must be at most the number of clients {self.clients}, got {self.active}"
            )
        if self.partition not in KINDS:
            raise UserError(
                f"unknown partition {self.partition!r}: {nearest(self.partition, KINDS)}"
            )
        if self.threads > MAX_THREADS:
            raise UserError(f"threads must be at most {MAX_THREADS}, got {self.threads}")
        for name in ("dirichlet_alpha", "width"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} must be above zero and finite, got {getattr(self, name)}")
        if not 0 < self.val_fraction < 1:
            raise UserError(f"val_fraction must lie between 0 and 1, got {self.val_fraction}")
        if not self.models:
            raise UserError("models must name at least one architecture")
        if not 0 <= self.adopt_tolerance <= 1:
            raise UserError(f"adopt_tolerance must lie in [0, 1], got {self.adopt_tolerance}")
        for name in self.models:
            check_name(name)
        self.recipe()  # a method or recipe that cannot be is refused here, not in the first round
        method = self.method_setup().method
        if method.one_architecture and len(set(self.models)) > 1:
            raise UserError(
                f"method {self.method!r} needs one architecture for all clients, "
                f"but models names {', '.join(dict.fromkeys(self.models))}"
            )

    def method_setup(self) -> MethodSetup:
        """The method, set up."""
        return set_up(self.method)

    def recipe(self) -> Recipe:
        """How students train: the general settings, the method's, and what was asked of either."""
        setup = self.method_setup()
        general = {f.name: getattr(self, f.name) for f in fields(Recipe)}
        preferred = {
            key: value
            for key, value in setup.recipe.items()
            if key in setup.asked or general[key] is None
        }
        chosen = {key: value for key, value in general.items() if value is not None}
        try:
            return Recipe(**{**chosen, **preferred})
        except UserError:
            raise
        except ValueError as error:
            raise UserError(str(error)) from None

    def wants_public(self) -> bool:
        """Whether public samples are set aside."""
        reads = self.method_setup().method.reads_public
        return reads if self.public is None else self.public

    def spec(self, client: int, channels: int, classes: int) -> ModelSpec:
        """The architecture of a client, by its number."""
        name = self.models[client % len(self.models)]
        features = self.method_setup().method.features
        return ModelSpec(name, channels, classes, self.width, features)

    def steps(self) -> int:
        """How many steps a run shows: a lesson each, and a client's checkpoint at the end."""
        return self.rounds * self.active + 2 * self.clients

    def identity(self) -> str:
        """A short name for exactly this configuration: runs of one identity have one result."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a field's value may be of."""
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a field's type; a switch is not a number."""
    kinds = _kinds(hint)
    if value is None or isinstance(value, bool):
        return type(value) in kinds
    if isinstance(value, tuple):
        return tuple[str, ...] in kinds and all(isinstance(name, str) for name in value)
    return type(value) in kinds or (type(value) is int and float in kinds)


def _in_words(hint: Any) -> str:
    """A field's type, for those who write settings."""
    words = {int: "a whole number", float: "a number", str: "text", NoneType: "None"}
    words[bool] = "true or false"
    kinds = _kinds(hint)
    return " or ".join(words.get(kind, "a tuple of names") for kind in kinds)


_LEAST = {
    "train_samples": 1,
    "shrink": 1,
    "clients": 1,
    "active": 1,
    "rounds": 1,
    "classes_per_client": 1,
    "min_samples": 3,
    "eval_every": 1,
    "eval_samples": 1,
    "seed": 0,
    "threads": 1,
}

UNSET = {"train_samples": "all", "ce": "method", "kd_weight": "method", "public": "method"}
"""What is written for None, which TOML does not have: all samples, what the method prefers."""

_CONFIG: TypeAdapter[Config] = TypeAdapter(Config)
KEYS = tuple(f.name for f in fields(Config))


def parse(settings: Mapping[str, Any]) -> Config:
    """Settings by key as a `Config`; a text value is read as the key's type."""
    check_keys(settings)
    values = {key: None if value == UNSET.get(key) else value for key, value in settings.items()}
    for key, value in values.items():
        if isinstance(value, bool) and bool not in _kinds(get_type_hints(Config)[key]):
            raise UserError(f"{key}: true and false are no value for it")
    if isinstance(models := values.get("models"), str):
        values["models"] = [name.strip() for name in models.strip("[]").split(",")]
    try:
        return _CONFIG.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        if isinstance(cause := first.get("ctx", {}).get("error"), UserError):
            raise cause from None
        key = ".".join(str(part) for part in first["loc"]) or "config"
        raise UserError(f"{key}: {first['msg'].lower()}, got {first['input']!r}") from None


def check_keys(settings: Mapping[str, Any]) -> None:
    """Raise a `UserError` with the nearest right key for one that does not exist."""
    for key in settings:
        if key not in KEYS:
            hint = nearest(key, KEYS)
            if key in ("only", "preset"):
                hint = "it can stand in a file or in a study's [base], not here"
            if key in ("temperature", "tau", "sigma", "eta", "floor", "kappa", "merge", "abroad"):
                hint = f"it is a setting of a method: write for example method='calm,{key}=...'"
            raise UserError(f"unknown setting {key!r}: {hint}")


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings over each other, the later over the earlier.

    A layer may have a table ``only`` with settings for single data sets. Which data set it is
    all layers decide together; the table's settings count as part of their own layer.
    """
    data = next((layer["data"] for layer in reversed(layers) if "data" in layer), Config.data)
    merged: dict[str, Any] = {}
    for layer in layers:
        plain = {key: value for key, value in layer.items() if key != "only"}
        check_keys(plain)
        special = _special(table(layer.get("only", {}), "only"))
        merged |= plain | special.get(str(data), {})
    return merged


def _special(only: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings for single data sets, by the set's name, all of them checked."""
    from calmfed import data  # most layers have no such table

    found = {}
    for name, told in only.items():
        known = [listed.partition(":")[0] for listed in data.names()]
        if name.partition(":")[0] not in known:
            raise UserError(f"[only.{name}]: there is no such data set: {nearest(name, known)}")
        found[name] = table(told, f"only.{name}")
        if "data" in found[name]:
            raise UserError(f"[only.{name}] cannot say which data set it is")
        check_keys(found[name])
    return found


def table(value: Any, name: str) -> dict[str, Any]:
    """A part of a TOML file that must be a table."""
    if not isinstance(value, Mapping):
        raise UserError(f"[{name}] must be a table of settings, got {value!r}")
    return dict(value)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dictionary, or a `UserError` that names it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None


def layers_of(source: str) -> list[dict[str, Any]]:
    """The settings of a preset or of a TOML file, with the file's ``preset`` under its own."""
    if not source.endswith(".toml"):
        return [preset_settings(source)]
    told = read_toml(Path(source))
    if presets.is_study(told):
        raise UserError(f"{source} is a study: start it with `calmfed study {source}`")
    return with_preset(told)


def with_preset(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Settings as layers: those of the preset they name, if any, and their own."""
    own = {key: value for key, value in told.items() if key not in ("preset", "summary")}
    return [preset_settings(told["preset"]), own] if "preset" in told else [own]


def read_value(text: str) -> Any:
    """The value behind ``--set key=``: as TOML writes it, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def preset_settings(name: str) -> dict[str, Any]:
    """The settings of a preset for one federation."""
    found = presets.load(str(name))
    if presets.is_study(found):
        raise UserError(f"preset {name!r} is a study: start it with `calmfed study {name}`")
    return {key: value for key, value in found.items() if key != "summary"}
