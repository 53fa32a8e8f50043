"""A generator that invents samples an ensemble is sure about (data-free distillation).

After the code of two data-free methods: class labels, batch-norm statistics and a student that
disagrees steer what is invented (Zhang et al., "DENSE", NeurIPS 2022; Chen et al., "Data-free
learning of student networks", ICCV 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calmfed import checks
from calmfed.errors import UserError

NOISE = 256
CHANNELS = 64


class Generator(nn.Module):
    """Noise and a label to a sample of any size: two blocks that double the map."""

    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        channels, height, width = shape
        self.size = (height, width)
        self.start = (-(-height // 4), -(-width // 4))
        self.classes = classes
        self.spread = nn.Linear(NOISE + classes, CHANNELS * self.start[0] * self.start[1])
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.LeakyReLU(0.2)
            )
            for before, after in ((CHANNELS, CHANNELS), (CHANNELS, CHANNELS // 2))
        )
        self.paint = nn.Conv2d(CHANNELS // 2, channels, 3, padding=1)
        # real samples have mean zero and deviation one
        self.scale = nn.BatchNorm2d(channels, affine=False)

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Noise [B, 256] and labels [B] to samples [B, channels, H, W]."""
        told = torch.cat([noise, F.one_hot(labels, self.classes).float()], dim=1)
        x: Tensor = self.norm(self.spread(told).view(len(noise), CHANNELS, *self.start))
        sizes = ((2 * self.start[0], 2 * self.start[1]), self.size)
        for block, size in zip(self.blocks, sizes, strict=True):
            x = block(F.interpolate(x, size=size))
        scaled: Tensor = self.scale(self.paint(x))
        return scaled


@dataclass(frozen=True)
class Invention:
    """How a generator is trained in a round.

    Attributes:
        steps: Batches.
        generator_batch: Samples a step.
        generator_lr: Learning rate of Adam.
        label: Weight of the ensemble's cross-entropy on the drawn labels.
        statistics: Weight of the distance from the teachers' batch-norm statistics.
        adversary: Weight of the divergence of the student from the ensemble, where they disagree;
            the generator seeks it, the student reduces it.
    """

    steps: int = 20
    generator_batch: int = 256
    generator_lr: float = 1e-3
    label: float = 1.0
    statistics: float = 1.0
    adversary: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("generator_batch", 2)):
            if getattr(self, name) < least:
                raise UserError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("generator_lr", "label", "statistics", "adversary"):
            checks.at_least_zero(name, getattr(self, name))


def invent(
    generator: Generator,
    student: nn.Module,
    teachers: Sequence[nn.Module],
    how: Invention,
    student_lr: float,
) -> tuple[int, int]:
    """Train a generator against an ensemble, and a student on what it makes; both in place.

    Draws come from torch's global generator.

    Args:
        generator: The generator.
        student: The server's model.
        teachers: The ensemble, in evaluation mode: its word is the mean of their logits.
        how: The settings.
        student_lr: Learning rate of the student's SGD.

    Returns:
        Passes of students (forward and backward), and forward passes of teachers.
    """
    maker = torch.optim.Adam(generator.parameters(), lr=how.generator_lr, betas=(0.5, 0.999))
    learner = torch.optim.SGD(student.parameters(), lr=student_lr, momentum=0.9)
    statistics = Statistics(teachers)
    for teacher in teachers:
        teacher.requires_grad_(False)
    for _ in range(how.steps):
        labels = torch.randint(generator.classes, (how.generator_batch,))
        generator.train()
        student.eval()
        made = generator(torch.randn(how.generator_batch, NOISE), labels)
        statistics.clear()
        said = ensemble(teachers, made)
        loss = how.label * F.cross_entropy(said, labels) + how.statistics * statistics.distance()
        loss = loss - how.adversary * disagreement(said, student(made))
        maker.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        maker.step()
        student.train()
        learner.zero_grad()
        answer = F.log_softmax(student(made.detach()), dim=1)
        F.kl_div(answer, said.detach().softmax(dim=1), reduction="batchmean").backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        learner.step()
    statistics.close()
    maker.zero_grad()
    learner.zero_grad()
    passes = how.steps * how.generator_batch
    # the generator studies, and the student twice: once it only shows the generator the way
    return 3 * passes, len(teachers) * passes


def draw(generator: Generator, count: int) -> Tensor:
    """So many invented samples, [count, C, H, W], as many of each class as can be."""
    labels = torch.arange(count) % generator.classes
    with torch.no_grad():
        made: Tensor = generator.eval()(torch.randn(count, NOISE), labels)
    return made


def ensemble(teachers: Sequence[nn.Module], x: Tensor) -> Tensor:
    """The mean of all logits, [B, C]."""
    return torch.stack([teacher(x) for teacher in teachers]).mean(dim=0)


def disagreement(said: Tensor, answer: Tensor) -> Tensor:
    """``KL(ensemble || student)`` over the samples whose largest entries differ, over the batch."""
    differs = said.argmax(dim=1) != answer.argmax(dim=1)
    log_p, log_q = F.log_softmax(said, dim=1), F.log_softmax(answer, dim=1)
    return (F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(dim=1) * differs).mean()


class Statistics:
    """How far batches are from those that teachers' batch-norm layers remember."""

    def __init__(self, teachers: Sequence[nn.Module]) -> None:
        self._teachers = len(teachers)
        self._found: list[Tensor] = []
        self._hooks = [
            layer.register_forward_pre_hook(self._note)
            for teacher in teachers
            for layer in teacher.modules()
            if isinstance(layer, nn.BatchNorm2d)
        ]

    def clear(self) -> None:
        """Forget the last batch."""
        self._found.clear()

    def distance(self) -> Tensor:
        """Distances of mean and variance, summed over layers, the mean over teachers."""
        if not self._found:
            return torch.zeros(())
        return torch.stack(self._found).sum() / self._teachers

    def close(self) -> None:
        """Stop listening."""
        for hook in self._hooks:
            hook.remove()

    def _note(self, layer: nn.Module, given: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.BatchNorm2d)  # noqa: S101 - for the type checker: hooked so
        mean, variance = layer.running_mean, layer.running_var
        if mean is None or variance is None:
            return
        x = given[0]
        far = (x.mean(dim=(0, 2, 3)) - mean).norm()
        self._found.append(far + (x.var(dim=(0, 2, 3), unbiased=False) - variance).norm())
