"""How a width factor narrows a layer."""


def scaled(channels: int, width: float) -> int:
    """The channels of a layer at a width factor, rounded, at least 2.

    >>> scaled(64, 0.25), scaled(6, 0.1)
    (16, 2)
    """
    return max(2, round(channels * width))
