"""Scoring networks by name, or the user's own, in one uniform wrapper.

Every network takes the rows of a pool, shape ``(n, d)``, and gives one real score per row, shape ``(n,)``: positive
for the class +1. Image networks bring rows into image form themselves.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from usimul.validation import InputError, InputTypeError, check_choice, check_count

__all__ = [
    "IMAGE_MODELS",
    "MODELS",
    "ModelSpec",
    "ScoreNet",
    "build_model",
    "n_parameters",
    "negate_output",
    "shift_output",
]

ModelSpec: TypeAlias = str | nn.Module | Callable[[], nn.Module]

MODELS = ("linear", "mlp", "mlp-dropout", "mlp-bn", "mlp-shared", "cnn", "resnet34")
IMAGE_MODELS = ("cnn", "resnet34")

_HIDDEN = 300
# Three halvings in resnet34, or two and a 2x2 grid in cnn, leave nothing of a smaller image to tell places apart.
_SMALLEST_SIDE = 8


class ScoreNet(nn.Module):
    """A network whose output is one score per row, with scaled inputs, a sign that can be flipped, and an offset.

    Sign and offset are buffers and not a change of the last layer's weights, so that they apply to any network, the
    flip exactly, and are saved and loaded with the weights.

    Parameters
    ----------
    body
        A network from ``(n, d)`` to ``(n,)`` or ``(n, 1)``.

    Examples
    --------
    >>> net = ScoreNet(nn.Linear(3, 1))
    >>> net(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    sign: Tensor
    offset: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, body: nn.Module, n_features: int = 1) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("sign", torch.tensor(1.0))
        self.register_buffer("offset", torch.tensor(0.0))
        # One number for each feature, also when all are equal: saved weights then have one shape for every scaling.
        self.register_buffer("shift", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def widen(self, n_features: int) -> None:
        """Make room for the scaling of ``n_features``; without their number there was room for one."""
        if self.shift.numel() == 1:
            self.shift, self.scale = self.shift.repeat(n_features), self.scale.repeat(n_features)
        if self.shift.numel() != n_features:
            raise InputError(
                f"`model` is a ScoreNet for {self.shift.numel()} features. Got points of {n_features}. "
                f"Make it with ScoreNet(body, {n_features})."
            )

    def set_scaling(self, shift: Tensor | float, deviation: Tensor | float) -> None:
        """Feed ``(X - shift) / deviation`` to the network; a feature that does not vary is only shifted."""
        spread = torch.as_tensor(deviation, dtype=self.scale.dtype).expand_as(self.scale)
        self.shift.copy_(torch.as_tensor(shift, dtype=self.shift.dtype).expand_as(self.shift))
        # Division by a tiny deviation, rounding noise of a constant feature, would blow up new points.
        tiny = spread <= 1e-6 * (1.0 + self.shift.abs().to(spread.device))
        self.scale.copy_(torch.where(tiny, torch.ones_like(spread), 1.0 / spread.clamp_min(1e-30)))

    def forward(self, X: Tensor) -> Tensor:
        """Return the scores of the rows of ``X``, shape ``(n,)``."""
        scores: Tensor = self.body((X - self.shift).mul_(self.scale))  # in place: a second temporary costs page faults
        if scores.ndim == 2:
            scores = scores.squeeze(1)
        return self.sign * scores - self.offset


class _BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut around them (He, Zhang, Ren, Sun 2016, figure 5 left)."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.shortcut = (
            nn.Identity()
            if stride == 1 and n_in == n_out
            else nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
        )

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.residual(images) + self.shortcut(images))


def _init_convolutions(net: nn.Module) -> nn.Module:
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net


def _linear(n_features: int) -> nn.Module:
    return nn.Linear(n_features, 1)


def _mlp(n_features: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(n_features, _HIDDEN),
        nn.ReLU(),
        nn.Linear(_HIDDEN, _HIDDEN),
        nn.ReLU(),
        nn.Linear(_HIDDEN, _HIDDEN),
        nn.ReLU(),
        nn.Linear(_HIDDEN, 1),
    )


def _mlp_dropout(n_features: int) -> nn.Module:
    return nn.Sequential(nn.Dropout(0.2), nn.Linear(n_features, 100), nn.ReLU(), nn.Dropout(0.5), nn.Linear(100, 1))


def _mlp_bn(n_features: int) -> nn.Module:
    layers: list[nn.Module] = []
    for width in (n_features, _HIDDEN, _HIDDEN):
        # No bias: BatchNorm subtracts the mean, so the gradient of a bias is zero and it would drift freely.
        layers += [nn.Linear(width, _HIDDEN, bias=False), nn.BatchNorm1d(_HIDDEN), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(_HIDDEN, 1))


class _SharedMLP(nn.Module):
    """The MLP of the released experiments: BatchNorm of the inputs, one hidden layer that is applied three times."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(n_features)
        self.first = nn.Linear(n_features, _HIDDEN)
        self.shared = nn.Linear(_HIDDEN, _HIDDEN)
        self.last = nn.Linear(_HIDDEN, 1)

    def forward(self, X: Tensor) -> Tensor:
        hidden = torch.relu(self.first(self.norm(X)))
        for _ in range(3):
            hidden = torch.relu(self.shared(hidden))
        scores: Tensor = self.last(hidden)
        return scores


def _cnn(image_shape: Sequence[int]) -> nn.Module:
    def convolution(n_in: int, n_out: int) -> list[nn.Module]:
        return [nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()]

    net = nn.Sequential(
        nn.Unflatten(1, tuple(image_shape)),
        *convolution(image_shape[0], 32),
        *convolution(32, 32),
        nn.MaxPool2d(2),
        *convolution(32, 64),
        *convolution(64, 64),
        nn.MaxPool2d(2),
        *convolution(64, 128),
        # A fixed grid after the convolutions makes the two dense layers independent of the image size.
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128 * 2 * 2, 128),
        nn.ReLU(),
        nn.Linear(128, 1),
    )
    return _init_convolutions(net)


def _resnet34(image_shape: Sequence[int]) -> nn.Module:
    layers: list[nn.Module] = [
        nn.Unflatten(1, tuple(image_shape)),
        # The 3x3 stem without pooling, usual for 32x32 images; the 7x7 one of ImageNet would discard most of them.
        nn.Conv2d(image_shape[0], 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
    ]
    width = 64
    for n_blocks, n_out in zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True):
        for block in range(n_blocks):
            stride = 2 if block == 0 and n_out != 64 else 1
            layers.append(_BasicBlock(width, n_out, stride))
            width = n_out
    return _init_convolutions(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1)))


_FLAT: dict[str, Callable[[int], nn.Module]] = {
    "linear": _linear,
    "mlp": _mlp,
    "mlp-dropout": _mlp_dropout,
    "mlp-bn": _mlp_bn,
    "mlp-shared": _SharedMLP,
}
_IMAGE: dict[str, Callable[[Sequence[int]], nn.Module]] = {"cnn": _cnn, "resnet34": _resnet34}


def build_model(
    model: ModelSpec, n_features: int, image_shape: Sequence[int] | None = None, *, seed: int | None = None
) -> ScoreNet:
    """Return a network that maps rows of ``n_features`` numbers to one score each.

    Parameters
    ----------
    model
        One of ``MODELS``, a network of your own, or a function or class that makes one when called without
        arguments. Your network is copied, never changed. It takes ``(n, n_features)`` and gives ``(n,)`` or ``(n, 1)``.
    n_features
        Number of columns of the pool.
    image_shape
        ``(channels, height, width)`` of one row. The image networks, "cnn" and "resnet34", need it.
    seed
        Seed of the initial weights. The global random state of torch stays as it was. None draws from that state.

    Returns
    -------
    ScoreNet
        In training mode, on the CPU unless your own network lives elsewhere.

    Raises
    ------
    InputError
        If the name is unknown, the shapes do not fit, or your network does not do what is said above.

    Examples
    --------
    >>> build_model("mlp", 784)(torch.zeros(2, 784)).shape
    torch.Size([2])
    >>> build_model("cnn", 784, (1, 28, 28))(torch.zeros(2, 784)).shape
    torch.Size([2])
    >>> build_model(nn.Linear(3, 2), 3)
    Traceback (most recent call last):
    ...
    usimul.validation.InputError: `model` must give one score per row, shape (n,) or (n, 1). For 2 rows of 3 features \
Linear gave shape (2, 2).
    """
    n_features = check_count(n_features, "n_features")
    shape = None if image_shape is None else _check_image_shape(image_shape, n_features)
    with _seeded(seed):
        if isinstance(model, str):
            return ScoreNet(_build_named(model, n_features, shape), n_features)
        body = _user_module(model)
        if isinstance(body, ScoreNet):
            body.widen(n_features)
        _check_user_module(body, n_features, shape)
    return body if isinstance(body, ScoreNet) else ScoreNet(body, n_features)


def _build_named(model: str, n_features: int, image_shape: tuple[int, ...] | None) -> nn.Module:
    name = check_choice(model, MODELS, "model")
    if name in _FLAT:
        return _FLAT[name](n_features)
    if image_shape is None:
        raise InputError(
            f"`image_shape` is required for model {name!r}: pass (channels, height, width), whose product is the "
            f"number of features, {n_features}. Got None. For rows that are not images use model='mlp'."
        )
    if min(image_shape[1:]) < _SMALLEST_SIDE:
        raise InputError(
            f"Model {name!r} needs images of at least {_SMALLEST_SIDE}x{_SMALLEST_SIDE}. Got `image_shape` "
            f"{image_shape}. For smaller ones use model='mlp'."
        )
    return _IMAGE[name](image_shape)


@contextlib.contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    if seed is None:
        yield
        return
    value = check_count(seed, "seed", low=0)
    # Networks are made on the CPU; forking and seeding the generators of all devices would wake each of them.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(value)
        yield


def _check_image_shape(image_shape: Sequence[int], n_features: int) -> tuple[int, ...]:
    try:
        sides = tuple(image_shape)
    except TypeError:
        raise InputTypeError(f"`image_shape` must be (channels, height, width). Got {image_shape!r}.") from None
    shape = tuple(check_count(side, "image_shape") for side in sides)
    if len(shape) != 3 or math.prod(shape) != n_features:
        raise InputError(
            f"`image_shape` must be (channels, height, width) with the product {n_features}, the number of features. "
            f"Got {shape}."
        )
    return shape


def _user_module(model: object) -> nn.Module:
    if isinstance(model, nn.Module):
        return copy.deepcopy(model)
    if not callable(model):
        raise InputTypeError(
            f"`model` must be one of: {', '.join(MODELS)}; a torch.nn.Module; or a function or class that makes one. "
            f"Got {model!r} of type {type(model).__name__}."
        )
    name = getattr(model, "__name__", type(model).__name__)
    try:
        inspect.signature(model).bind()
    except TypeError as error:
        raise InputError(
            f"`model` must be callable without arguments. {name!r} is not: {error}. Wrap it: lambda: {name}(...)."
        ) from None
    except ValueError:
        # Some compiled callables have no signature; calling them is the only way to know.
        pass
    made = model()
    if not isinstance(made, nn.Module):
        raise InputTypeError(f"`model` must make a torch.nn.Module. {name!r} made a {type(made).__name__}.")
    return made


def _check_user_module(body: nn.Module, n_features: int, image_shape: tuple[int, ...] | None) -> None:
    name = type(body).__name__
    parameter = next((p for p in body.parameters() if p.requires_grad), None)
    if parameter is None:
        raise InputError(f"`model` must have parameters to train. {name} has none that require a gradient.")
    X = torch.full((2, n_features), 0.5, dtype=torch.float32, device=parameter.device)  # what points are
    modes = [(module, module.training) for module in body.modules()]
    body.eval()
    try:
        with torch.no_grad():
            out = body(X)
    except Exception as error:
        hint = f" If it expects images, begin it with torch.nn.Unflatten(1, {image_shape})." if image_shape else ""
        if parameter.dtype != torch.float32:
            hint = f" Its parameters are {parameter.dtype} and points torch.float32: convert it with model.float()."
        raise InputError(
            f"`model` must take rows of shape (n, {n_features}). {name} failed on 2 such rows: "
            f"{type(error).__name__}: {error}.{hint}"
        ) from error
    finally:
        for module, training in modes:
            module.training = training
    if not isinstance(out, Tensor):
        raise InputError(f"`model` must give a tensor with one score per row. {name} gave a {type(out).__name__}.")
    if tuple(out.shape) not in {(2,), (2, 1)}:
        raise InputError(
            f"`model` must give one score per row, shape (n,) or (n, 1). For 2 rows of {n_features} features {name} "
            f"gave shape {tuple(out.shape)}."
        )
    if not out.is_floating_point():
        raise InputError(f"`model` must give real scores. {name} gave {out.dtype}.")


def negate_output(model: nn.Module) -> None:
    """Flip the sign of every score of ``model``, in place.

    Examples
    --------
    >>> net = build_model("linear", 2, seed=0)
    >>> X = torch.ones(1, 2)
    >>> before = net(X).item()
    >>> negate_output(net)
    >>> net(X).item() == -before
    True
    """
    if not isinstance(model, ScoreNet):
        raise InputTypeError(f"`model` must be a network from `build_model`. Got {type(model).__name__}.")
    model.sign.neg_()
    model.offset.neg_()


def shift_output(model: nn.Module, by: float) -> None:
    """Subtract ``by`` from every score of ``model``, in place: points that scored ``by`` are on the boundary then.

    Examples
    --------
    >>> net = build_model("linear", 2, seed=0)
    >>> X = torch.ones(1, 2)
    >>> shift_output(net, net(X).item())
    >>> net(X).item()
    0.0
    """
    if not isinstance(model, ScoreNet):
        raise InputTypeError(f"`model` must be a network from `build_model`. Got {type(model).__name__}.")
    model.offset.add_(by)


def n_parameters(model: nn.Module) -> int:
    """Return how many numbers training may change.

    Examples
    --------
    >>> n_parameters(build_model("linear", 10))
    11
    """
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
