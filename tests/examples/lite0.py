"""EfficientNet-lite0 as it was published, operation by operation and with nothing folded."""

import math

import torch
from torch import nn
from torch.nn import functional

BLOCKS = (
    # inputs, outputs, kernel, stride, expansion
    (32, 16, 3, 1, 1),
    (16, 24, 3, 2, 6),
    (24, 24, 3, 1, 6),
    (24, 40, 5, 2, 6),
    (40, 40, 5, 1, 6),
    (40, 80, 3, 2, 6),
    (80, 80, 3, 1, 6),
    (80, 80, 3, 1, 6),
    (80, 112, 5, 1, 6),
    (112, 112, 5, 1, 6),
    (112, 112, 5, 1, 6),
    (112, 192, 5, 2, 6),
    (192, 192, 5, 1, 6),
    (192, 192, 5, 1, 6),
    (192, 192, 5, 1, 6),
    (192, 320, 3, 1, 6),
)


def random_weights(seed):
    """Tensors of the published names and shapes, the classifier among them."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}

    def layer(convolution, normalisation, shape):
        inputs = math.prod(shape[1:])
        weights[f"{convolution}.weight"] = torch.randn(shape, generator=generator) / inputs**0.5
        width = shape[0]
        for name, low, high in (
            ("weight", 0.8, 1.2),
            ("bias", -0.5, 1.0),
            ("running_mean", -0.3, 0.3),
            ("running_var", 0.5, 1.5),
        ):
            number = torch.rand(width, generator=generator) * (high - low) + low
            weights[f"{normalisation}.{name}"] = number
        weights[f"{normalisation}.num_batches_tracked"] = torch.tensor(7)

    layer("_conv_stem", "_bn0", (32, 3, 3, 3))
    for place, (inputs, outputs, kernel, _, expansion) in enumerate(BLOCKS):
        block, inner = f"_blocks.{place}", inputs * expansion
        if expansion > 1:
            layer(f"{block}._expand_conv", f"{block}._bn0", (inner, inputs, 1, 1))
        layer(f"{block}._depthwise_conv", f"{block}._bn1", (inner, 1, kernel, kernel))
        layer(f"{block}._project_conv", f"{block}._bn2", (outputs, inner, 1, 1))
    layer("_conv_head", "_bn1", (1280, 320, 1, 1))
    weights["_fc.weight"] = torch.zeros(1000, 1280)
    weights["_fc.bias"] = torch.zeros(1000)
    return weights


def features(weights, pictures):
    """The features of all places [batch, 1280, 7, 7] of pictures [batch, 3, 224, 224]."""
    states = nn.ReLU6()(_layer(weights, "_conv_stem", "_bn0", pictures, 2))
    for place, (inputs, outputs, _, stride, expansion) in enumerate(BLOCKS):
        block, before = f"_blocks.{place}", states
        if expansion > 1:
            widened = _layer(weights, f"{block}._expand_conv", f"{block}._bn0", states, 1)
            states = nn.ReLU6()(widened)
        looked = _layer(weights, f"{block}._depthwise_conv", f"{block}._bn1", states, stride)
        states = nn.ReLU6()(looked)
        states = _layer(weights, f"{block}._project_conv", f"{block}._bn2", states, 1)
        if stride == 1 and inputs == outputs:
            states = states + before
    return nn.ReLU6()(_layer(weights, "_conv_head", "_bn1", states, 1))


def _layer(weights, convolution, normalisation, states, stride):
    """A convolution with `same` padding, then a batch normalisation."""
    weight = weights[f"{convolution}.weight"]
    side, kernel = states.shape[-1], weight.shape[-1]
    missing = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
    before, behind = missing // 2, missing - missing // 2
    groups = states.shape[1] // weight.shape[1]
    states = functional.pad(states, (before, behind, before, behind))
    states = functional.conv2d(states, weight, stride=stride, groups=groups)
    return functional.batch_norm(
        states,
        weights[f"{normalisation}.running_mean"],
        weights[f"{normalisation}.running_var"],
        weights[f"{normalisation}.weight"],
        weights[f"{normalisation}.bias"],
        eps=1e-3,
    )
