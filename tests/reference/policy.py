"""The Token Selection Transformer of App. A.4 for one item at one state, number by number."""

import math
from collections.abc import Mapping, Sequence

Vector = list[float]
Weights = Mapping[str, list]
"""A state_dict as nested lists."""


def linear(weights: Weights, name: str, vector: Sequence[float]) -> Vector:
    rows, biases = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return [
        sum(one * other for one, other in zip(row, vector, strict=True)) + bias
        for row, bias in zip(rows, biases, strict=True)
    ]


def gelu(number: float) -> float:
    return number * (1 + math.erf(number / math.sqrt(2))) / 2


def mlp(weights: Weights, name: str, vector: Sequence[float]) -> Vector:
    hidden = [gelu(number) for number in linear(weights, f"{name}.0", vector)]
    return linear(weights, f"{name}.2", hidden)


def layer_norm(weights: Weights, name: str, vector: Sequence[float]) -> Vector:
    mean = sum(vector) / len(vector)
    variance = sum((number - mean) ** 2 for number in vector) / len(vector)
    scaled = [(number - mean) / math.sqrt(variance + 1e-5) for number in vector]
    return [
        number * gain + shift
        for number, gain, shift in zip(
            scaled, weights[f"{name}.weight"], weights[f"{name}.bias"], strict=True
        )
    ]


def softmax(numbers: Sequence[float]) -> Vector:
    powers = [math.exp(number - max(numbers)) for number in numbers]
    return [power / sum(powers) for power in powers]


def multi_head_attention(
    weights: Weights, name: str, heads: int, query: Sequence[float], keys: Sequence[Vector]
) -> Vector:
    """MHA(q, K, K) for one query."""
    width = len(query)
    third = {
        part: {
            "in.weight": weights[f"{name}.in_proj_weight"][place * width : (place + 1) * width],
            "in.bias": weights[f"{name}.in_proj_bias"][place * width : (place + 1) * width],
        }
        for place, part in enumerate(("query", "key", "value"))
    }
    asked = linear(third["query"], "in", query)
    offered = [linear(third["key"], "in", key) for key in keys]
    values = [linear(third["value"], "in", key) for key in keys]
    size = width // heads
    joined: Vector = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        products = [
            sum(one * other for one, other in zip(asked[part], key[part], strict=True))
            for key in offered
        ]
        shares = softmax([product / math.sqrt(size) for product in products])
        for place in range(part.start, part.stop):
            joined.append(
                sum(share * value[place] for share, value in zip(shares, values, strict=True))
            )
    return linear(weights, f"{name}.out_proj", joined)


def cross_attention(
    weights: Weights, name: str, heads: int, query: Sequence[float], keys: Sequence[Vector]
) -> Vector:
    """LN(h + MHA(h, K, K))."""
    read = multi_head_attention(weights, f"{name}.attention", heads, query, keys)
    total = [one + other for one, other in zip(query, read, strict=True)]
    return layer_norm(weights, f"{name}.norm", total)


def normalized(feedback: Sequence[Vector], selected: Sequence[int]) -> list[Vector]:
    """Norm of F_t, by mean and deviation over the selected positions and their items."""
    seen = [number for position in selected for number in feedback[position]]
    mean = sum(seen) / len(seen)
    deviation = math.sqrt(sum((number - mean) ** 2 for number in seen) / len(seen))
    return [[(number - mean) / (deviation + 1e-6) for number in row] for row in feedback]


def encoded_feedback(
    weights: Weights, feedback: Sequence[Vector], selected: Sequence[int], expandable: Sequence[int]
) -> list[Vector]:
    """E_t: one row for each of the top items."""
    positions = range(len(feedback))
    masks = [float(position in selected) for position in positions]
    masks += [float(position in expandable) for position in positions]
    scaled = normalized(feedback, selected)
    return [
        mlp(weights, "reader.encode", [scaled[position][item] for position in positions] + masks)
        for item in range(len(feedback[0]))
    ]


def logits(  # noqa: PLR0917 - what App. A.4 has
    weights: Weights,
    heads: int,
    candidates: Sequence[Vector],
    feedback: Sequence[Vector],
    selected: Sequence[int],
    expandable: Sequence[int],
    context: int,
) -> Vector:
    """l_t: the logits of all actions, also of those that are not possible at the state."""
    hidden = [
        [
            one + other
            for one, other in zip(
                linear(weights, "embedding.linear", vector),
                weights["embedding.positions"][position],
                strict=True,
            )
        ]
        for position, vector in enumerate(candidates)
    ]
    keys = [hidden[position] for position in selected]
    read = [
        cross_attention(weights, "attention", heads, hidden[position], keys)
        for position in expandable
    ]
    if "reader.encode.0.weight" in weights:
        rows = encoded_feedback(weights, feedback, selected, expandable)
        read = [cross_attention(weights, "reader.attention", heads, row, rows) for row in read]
    pooled = [sum(column) / len(read) for column in zip(*read, strict=True)]
    where = weights["context.weight"][context]
    return mlp(weights, "head", [one + other for one, other in zip(pooled, where, strict=True)])
