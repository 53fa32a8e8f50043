"""One bench an architecture: what is laid on it is the model, and nobody disturbs anybody."""

import torch
from torch import Tensor, nn

from calmfed.models import ModelSpec
from calmfed.snapshot import state_of
from calmfed.workshop import Workshop, predict

SPEC = ModelSpec("cnn6", channels=1, classes=3, width=0.05)
OTHER = ModelSpec("cnn6", channels=1, classes=4, width=0.05)


def built(spec: ModelSpec, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return spec.build()


X = torch.arange(7 * 64.0).reshape(7, 1, 8, 8).sin()


def test_a_state_laid_on_a_bench_is_the_model_it_came_from() -> None:
    workshop = Workshop()
    for seed in (1, 2):
        model = built(SPEC, seed).eval()
        teacher = workshop.teacher(SPEC, state_of(model))
        torch.testing.assert_close(predict(teacher, X, 100), predict(model, X, 100))


def test_states_that_differ_in_their_statistics_alone_are_different_models() -> None:
    workshop, model = Workshop(), built(SPEC, 1).eval()
    answers = []
    for mean in (0.0, 0.5):
        state = state_of(model)
        for name, tensor in state.items():
            if name.endswith("running_mean"):
                tensor.fill_(mean)
        answers.append(predict(workshop.teacher(SPEC, state), X, 100))
    assert not torch.allclose(answers[0], answers[1])


def test_an_architecture_is_built_once_for_each_role() -> None:
    workshop = Workshop()
    state = state_of(built(SPEC, 1))
    assert workshop.teacher(SPEC, state) is workshop.teacher(SPEC, state)
    assert workshop.student(SPEC, state) is workshop.student(SPEC, state)
    assert workshop.student(SPEC, state) is not workshop.teacher(SPEC, state)
    assert workshop.teacher(OTHER, state_of(built(OTHER, 1))) is not workshop.teacher(SPEC, state)


def test_a_teacher_does_not_disturb_a_student_at_work() -> None:
    workshop = Workshop()
    mine, its = state_of(built(SPEC, 1)), state_of(built(SPEC, 2))
    student = workshop.student(SPEC, mine).train()
    teacher = workshop.teacher(SPEC, its)
    assert student.training
    assert not teacher.training
    for name, tensor in state_of(student).items():
        assert torch.equal(tensor, mine[name])


def test_work_on_a_bench_does_not_reach_the_state_that_was_laid_on_it() -> None:
    state = state_of(built(SPEC, 1))
    before = {name: tensor.clone() for name, tensor in state.items()}
    student = Workshop().student(SPEC, state)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(1)
    assert all(torch.equal(state[name], before[name]) for name in state)


def test_building_a_bench_does_not_touch_torchs_generator() -> None:
    state = state_of(built(SPEC, 1))
    before = torch.get_rng_state()
    Workshop().teacher(SPEC, state)
    assert torch.equal(torch.get_rng_state(), before)


def test_predict_goes_in_batches_and_keeps_no_gradient() -> None:
    sizes = []

    def double(x: Tensor) -> Tensor:
        sizes.append(len(x))
        return 2 * x

    x = torch.arange(7.0, requires_grad=True).reshape(7, 1)
    found = predict(double, x, 3)
    assert sizes == [3, 3, 1]
    assert not found.requires_grad
    assert torch.equal(found, 2 * x.detach())
