"""What all tests share."""

import torch
from hypothesis import settings

# No test may depend on how fast a machine is.
settings.register_profile("calmfed", deadline=None)
settings.load_profile("calmfed")

# One thread, as in a run: more would wait for each other where tests run side by side.
torch.set_num_threads(1)
