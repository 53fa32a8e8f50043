"""One's own model and one's own arrays: does help from peers beat training alone?"""

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

import calmfed


@calmfed.register_model("perceptron")
def perceptron(channels: int, classes: int, width: float) -> nn.Module:
    """Any module from [B, channels, H, W] to logits [B, classes]; here for 8x8 images."""
    hidden = round(64 * width)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64 * channels, hidden), nn.ReLU(), nn.Linear(hidden, classes)
    )


x, y = load_digits(return_X_y=True)
x = x.reshape(-1, 8, 8).astype(np.uint8)
mine = calmfed.from_arrays(x[:1400], y[:1400], x[1400:], y[1400:])
for method in ("local", "calm", "visit"):
    result = calmfed.run(
        dataset=mine, models=("perceptron", "cnn6"), method=method, clients=6, active=3,
        rounds=15, width=0.25,
    )  # fmt: skip
    print(f"{method:6} {result.accuracy:.1%} alone, {result.ensemble:.1%} as an ensemble")
