"""The reference's own figures, to stand beside ours and never in their place.

Ying and Tian, "CALM": global accuracy in per cent, one figure each, no seeds and no spread; 10
active clients, 300 rounds, full models. It has no row for training alone.
"""

from dataclasses import dataclass

from calmfed.config import Config

DATA = ("cifar10", "svhn", "organamnist", "speech_commands")

_MAIN = {
    50: {
        "fedmd": (20.26, 17.27, 20.25, 10.48),
        "fedgd": (21.01, 10.12, 22.11, 17.15),
        "msfkd": (24.05, 16.08, 21.98, 19.09),
        "dfml": (40.07, 70.35, 58.76, 61.49),
        "uniform": (28.43, 44.24, 53.51, 75.39),
        "hard": (39.60, 58.57, 59.38, 79.74),
        "calm": (39.83, 71.50, 61.05, 81.85),
    },
    100: {
        "fedmd": (10.50, 19.35, 20.34, 10.46),
        "fedgd": (11.38, 10.01, 13.47, 10.81),
        "msfkd": (19.82, 18.31, 23.08, 10.85),
        "dfml": (29.43, 22.86, 46.98, 37.23),
        "uniform": (23.40, 23.78, 50.24, 59.93),
        "hard": (30.78, 34.87, 51.13, 60.00),
        "calm": (31.89, 42.86, 52.80, 62.61),
    },
}
_GATES = {"calm:1": 58.53, "calm:12": 63.84}
"""SVHN, 50 clients."""

_SKEW = {
    "uniform": {0.1: 20.36, 0.3: 23.40, 0.5: 27.59},
    "hard": {0.1: 25.07, 0.3: 30.78, 0.5: 33.85},
    "calm": {0.1: 26.21, 0.3: 31.89, 0.5: 35.46},
}
"""CIFAR-10, 100 clients, by Dirichlet concentration."""


@dataclass(frozen=True)
class Claim:
    """What the reference reports.

    Attributes:
        accuracy: As a share.
        clients: Of how many clients; ours may be fewer.
    """

    accuracy: float
    clients: int


def claimed(config: Config, likely: int = 50) -> Claim | None:
    """What the reference reports for a configuration's method, data and skew; None for nothing.

    Args:
        config: The configuration.
        likely: Of 50 or 100 clients, where the configuration has another number.
    """
    if config.data not in DATA or config.partition != "dirichlet":
        return None
    if config.ce not in (None, "plain"):
        return None
    clients = config.clients if config.clients in _MAIN else likely
    if config.dirichlet_alpha != 0.3:
        clients = 100
        found = _SKEW.get(config.method, {}).get(config.dirichlet_alpha)
        figure = found if config.data == "cifar10" else None
    elif config.method in _GATES:
        figure = _GATES[config.method] if (config.data, clients) == ("svhn", 50) else None
    else:
        row = _MAIN[clients].get(config.method)
        figure = None if row is None else row[DATA.index(config.data)]
    return None if figure is None else Claim(figure / 100, clients)
