"""Networks: shapes, gradients, sizes counted by hand, the sign flip, and networks made by users."""

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from usimul.models import IMAGE_MODELS, MODELS, ScoreNet, build_model, n_parameters, negate_output
from usimul.validation import InputError, InputTypeError

FLAT_MODELS = tuple(name for name in MODELS if name not in IMAGE_MODELS)


def example(name, seed=0):
    """A network of that name and a batch that it takes."""
    shape = (1, 8, 8) if name in IMAGE_MODELS else None
    d = 64 if shape else 7
    rows = torch.randn(4, d, generator=torch.Generator().manual_seed(1))
    return build_model(name, d, shape, seed=seed), rows


@pytest.mark.parametrize("name", MODELS)
class TestNamedModels:
    def test_gives_one_score_per_row(self, name):
        net, X = example(name)
        assert net(X).shape == (4,)
        net.eval()
        assert net(X[:1]).shape == (1,)

    def test_gradient_reaches_every_parameter(self, name):
        torch.manual_seed(0)
        net, X = example(name)
        nn.functional.softplus(-net(X)).mean().backward()
        without = [key for key, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        assert without == []

    def test_seed_decides_the_weights_and_leaves_the_global_state_alone(self, name):
        before = torch.random.get_rng_state()
        first, second, other = example(name, seed=3)[0], example(name, seed=3)[0], example(name, seed=4)[0]
        assert torch.equal(torch.random.get_rng_state(), before)
        weights = [torch.nn.utils.parameters_to_vector(net.parameters()) for net in (first, second, other)]
        assert torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[0], weights[2])

    def test_negate_output_flips_exactly_and_back(self, name):
        net, X = example(name)
        net.eval()
        before = net(X)
        negate_output(net)
        assert torch.equal(net(X), -before)
        negate_output(net)
        assert torch.equal(net(X), before)

    def test_weights_survive_safetensors_with_the_sign(self, name, tmp_path):
        net, X = example(name)
        negate_output(net)
        save_file(net.state_dict(), tmp_path / "net.safetensors")
        loaded = example(name, seed=9)[0]
        loaded.load_state_dict(load_file(tmp_path / "net.safetensors"))
        assert torch.equal(loaded.eval()(X), net.eval()(X))

    def test_copy_is_independent(self, name):
        net, X = example(name)
        net.eval()
        twin = copy.deepcopy(net)
        negate_output(twin)
        assert torch.equal(twin(X), -net(X))

    def test_scores_of_a_row_do_not_depend_on_the_others_when_evaluating(self, name):
        net, X = example(name)
        net.eval()
        alone = torch.cat([net(X[i : i + 1]) for i in range(len(X))])
        torch.testing.assert_close(alone, net(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 64, 64), (3, 64, 64), (3, 17, 23)])
@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_image_models_take_any_size(name, shape):
    net = build_model(name, int(np.prod(shape)), shape, seed=0).eval()
    with torch.no_grad():
        assert net(torch.rand(2, int(np.prod(shape)))).shape == (2,)


def test_image_rows_are_read_in_channel_height_width_order():
    net = build_model("cnn", 3 * 8 * 10, (3, 8, 10), seed=0).eval()
    images = torch.rand(2, 3, 8, 10)
    body = net.body
    assert torch.equal(net(images.flatten(1)), body[1:](images).squeeze(1))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linear", 785),
        # 784 * 300 + 300, twice 300 * 300 + 300, 300 + 1
        ("mlp", 235_500 + 2 * 90_300 + 301),
        ("mlp-dropout", 78_500 + 101),
        # No bias in the hidden layers; scale and shift of three BatchNorms, 600 each.
        ("mlp-bn", 235_200 + 2 * 90_000 + 3 * 600 + 301),
        # BatchNorm of 784 inputs; the 300 x 300 layer counts once, though it is applied three times.
        ("mlp-shared", 2 * 784 + 235_500 + 90_300 + 301),
        # Weights 9 * in * out and two numbers per channel for each BatchNorm; then 512 * 128 + 128 and 128 + 1.
        (
            "cnn",
            9 * (32 + 32 * 32 + 32 * 64 + 64 * 64 + 64 * 128) + 2 * (32 + 32 + 64 + 64 + 128) + 65_664 + 129,
        ),
    ],
)
def test_number_of_parameters(name, expected):
    assert n_parameters(build_model(name, 784, (1, 28, 28))) == expected


def test_resnet34_has_the_number_of_parameters_counted_by_hand():
    # stem: 3 * 64 * 9 weights + 2 * 64 of BatchNorm = 1,856
    stem = 1_728 + 128
    # stage 1 (64 channels): 3 blocks of two 3x3 convolutions (36,864 each) and two BatchNorms (128 each)
    stage1 = 3 * (2 * 36_864 + 2 * 128)
    # stage 2 (128): first block 64 -> 128 (73,728), 128 -> 128 (147,456), 1x1 shortcut (8,192), three BatchNorms of 256
    # each; then 3 blocks of 2 * 147,456 + 2 * 256
    stage2 = (73_728 + 147_456 + 8_192 + 3 * 256) + 3 * (2 * 147_456 + 2 * 256)
    # stage 3 (256): the same with 294,912, 589,824, 32,768 and BatchNorms of 512; then 5 plain blocks
    stage3 = (294_912 + 589_824 + 32_768 + 3 * 512) + 5 * (2 * 589_824 + 2 * 512)
    # stage 4 (512): the same with 1,179,648, 2,359,296, 131,072 and BatchNorms of 1,024; then 2 plain blocks
    stage4 = (1_179_648 + 2_359_296 + 131_072 + 3 * 1_024) + 2 * (2 * 2_359_296 + 2 * 1_024)
    # last: 512 weights and one bias. As a cross-check: the 1000-class network with a 7x7 stem is known to have
    # 21,797,672; less 512 * 1000 + 1000 and 3 * 64 * 49, plus 513 and 3 * 64 * 9, that is the same number.
    total = stem + stage1 + stage2 + stage3 + stage4 + 513
    assert total == 21_797_672 - 513_000 - 9_408 + 513 + 1_728 == 21_277_505
    assert n_parameters(build_model("resnet34", 3072, (3, 32, 32))) == total


def test_resnet34_has_34_weighted_layers_outside_the_shortcuts():
    net = build_model("resnet34", 3072, (3, 32, 32))
    layers = [key for key, m in net.named_modules() if isinstance(m, nn.Conv2d | nn.Linear) and "shortcut" not in key]
    assert len(layers) == 34


def test_cnn_has_five_convolutions_and_two_dense_layers():
    modules = list(build_model("cnn", 784, (1, 28, 28)).modules())
    assert sum(isinstance(m, nn.Conv2d) for m in modules) == 5
    assert sum(isinstance(m, nn.Linear) for m in modules) == 2


@pytest.mark.parametrize("name", FLAT_MODELS)
def test_flat_models_accept_and_ignore_an_image_shape(name):
    assert build_model(name, 64, (1, 8, 8))(torch.zeros(2, 64)).shape == (2,)


def test_mlp_is_the_plain_formula():
    net, X = example("mlp")
    w = [p.detach().numpy().astype(np.float64) for p in net.parameters()]
    h = X.numpy().astype(np.float64)
    for k in (0, 2, 4):
        h = np.maximum(h @ w[k].T + w[k + 1], 0.0)
    np.testing.assert_allclose(net(X).detach().numpy(), (h @ w[6].T + w[7])[:, 0], rtol=1e-4, atol=1e-6)


def test_a_linear_network_learns_the_sign_of_a_feature():
    X = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    y = torch.sign(X[:, 1])
    net = build_model("linear", 3, seed=0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.softplus(-y * net(X)).mean().backward()
        optimizer.step()
    assert (torch.sign(net(X)) == y).float().mean() > 0.97


class NetWithBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.last = nn.Linear(5, 1)

    def forward(self, X):
        return self.last(self.norm(X)).squeeze(1)


class WithTwoArguments(nn.Linear):
    pass


class TestUserModels:
    @pytest.mark.parametrize(
        "model",
        [
            nn.Linear(5, 1),
            NetWithBatchNorm(),
            NetWithBatchNorm,
            lambda: nn.Linear(5, 1),
            lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1)),
            build_model("mlp", 5),
            ScoreNet(nn.Linear(5, 1)),
        ],
        ids=["module", "flat-output", "class", "function", "lazy", "score-net", "score-net-of-any-width"],
    )
    def test_are_accepted(self, model):
        net = build_model(model, 5)
        net.set_scaling(torch.zeros(5), torch.ones(5))
        assert isinstance(net, ScoreNet)
        assert not isinstance(net.body, ScoreNet)
        dtype = next(net.parameters()).dtype
        X = torch.randn(3, 5, dtype=dtype)
        net.eval()
        before = net(X)
        assert before.shape == (3,)
        assert before.dtype == dtype
        negate_output(net)
        assert torch.equal(net(X), -before)

    def test_instance_is_copied(self):
        mine = nn.Linear(5, 1)
        weight = mine.weight.detach().clone()
        first, second = build_model(mine, 5), build_model(mine, 5)
        with torch.no_grad():
            for p in first.parameters():
                p.add_(1.0)
        assert torch.equal(mine.weight, weight)
        assert torch.equal(second.body.weight, weight)

    def test_checking_changes_neither_statistics_nor_modes(self):
        mine = NetWithBatchNorm()
        mine.norm.eval()
        net = build_model(mine, 5)
        assert net.body.training
        assert not net.body.norm.training
        assert net.body.norm.num_batches_tracked == 0

    def test_factory_is_seeded(self):
        def make():
            return nn.Linear(5, 1)

        assert torch.equal(build_model(make, 5, seed=1).body.weight, build_model(make, 5, seed=1).body.weight)

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (
                nn.Linear(5, 2),
                r"one score per row, shape \(n,\) or \(n, 1\).*Linear gave shape \(2, 2\)",
            ),
            (nn.Linear(4, 1), r"must take rows of shape \(n, 5\)\. Linear failed on 2 such rows: RuntimeError"),
            (nn.Sequential(nn.Linear(5, 1), nn.Flatten(0), nn.Unflatten(0, (2, 1, 1))), r"gave shape \(2, 1, 1\)"),
            (nn.Linear(5, 1).double(), r"Its parameters are torch.float64 .*convert it with model\.float\(\)"),
            (ScoreNet(nn.Linear(5, 1), 4), r"is a ScoreNet for 4 features. Got points of 5. Make it with ScoreNet"),
            (nn.LSTM(5, 1), "gave a tuple"),
            (nn.Identity(), "must have parameters to train"),
            (WithTwoArguments, r"callable without arguments.*WithTwoArguments.*Wrap it: lambda"),
        ],
        ids=[
            "two-columns",
            "width",
            "float64",
            "score-net",
            "three-dimensions",
            "tuple",
            "constant",
            "needs-arguments",
        ],
    )
    def test_bad_ones_are_refused(self, model, message):
        with pytest.raises(InputError, match=message):
            build_model(model, 5)

    def test_integer_scores_are_refused(self):
        class Votes(nn.Linear):
            def forward(self, X):
                return (super().forward(X) > 0).squeeze(1).long()

        with pytest.raises(InputError, match=r"real scores.*int64"):
            build_model(Votes(5, 1), 5)

    def test_hint_for_networks_that_expect_images(self):
        net = nn.Sequential(nn.Conv2d(1, 1, 3), nn.Flatten(), nn.Linear(36, 1))
        with pytest.raises(InputError, match=r"begin it with torch\.nn\.Unflatten\(1, \(1, 8, 8\)\)"):
            build_model(net, 64, (1, 8, 8))
        fixed = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), net)
        assert build_model(fixed, 64, (1, 8, 8))(torch.zeros(2, 64)).shape == (2,)

    def test_function_must_make_a_module(self):
        with pytest.raises(InputTypeError, match=r"must make a torch\.nn\.Module.*made a int"):
            build_model(lambda: 3, 5)

    @pytest.mark.parametrize("model", [3, None, ["mlp"]])
    def test_other_types_are_refused(self, model):
        with pytest.raises(InputTypeError, match="must be one of: linear, mlp"):
            build_model(model, 5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("resnet43", 64), InputError, "Did you mean 'resnet34'"),
        (("cnn", 64), InputError, r"`image_shape` is required for model 'cnn'.*features, 64"),
        (("cnn", 64, (1, 8, 9)), InputError, r"product 64.*Got \(1, 8, 9\)"),
        (("mlp", 64, (8, 8)), InputError, r"must be \(channels, height, width\).*Got \(8, 8\)"),
        (("cnn", 49, (1, 7, 7)), InputError, "at least 8x8"),
        (("cnn", 64, 64), InputTypeError, r"must be \(channels, height, width\)\. Got 64"),
        (("mlp", 0), InputError, "`n_features` must be at least 1"),
        (("mlp", 2.5), InputTypeError, "`n_features` must be an integer"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        build_model(*arguments)


def test_bad_seed_is_refused():
    with pytest.raises(InputError, match="`seed` must be at least 0"):
        build_model("mlp", 3, seed=-1)


def test_negate_output_needs_a_score_net():
    with pytest.raises(InputTypeError, match=r"from `build_model`\. Got Linear"):
        negate_output(nn.Linear(2, 1))


def test_n_parameters_leaves_frozen_ones_out():
    net = build_model("linear", 4)
    net.body.bias.requires_grad_(False)
    assert n_parameters(net) == 4
