"""Small stand-ins for what is trained, quick to build and to run."""

from dataclasses import replace

import torch
from torch import nn

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.feedback import PolicyInputs
from adaptiveembed.representation.dropout import ItemDropout, item_dropout
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.space import coarse_to_fine
from adaptiveembed.training.settings import (
    DeviceChoice,
    OptimizerSettings,
    PolicyTrainingSettings,
    TrainingSettings,
)
from adaptiveembed.training.stage_one import TrainingPairs, train_embedder
from adaptiveembed.training.stage_two import PolicyExamples, train_policy

TEXT, IMAGE = Modality.TEXT, Modality.IMAGE
LAYOUT = GroupLayout((2, 2))
WIDTH, VECTORS, DIM = 6, 4, 5
SAMPLES, STATES, ACTIONS = 24, len(Actions(coarse_to_fine(LAYOUT)).states), 4


class ToyEmbedder(nn.Module):
    """Pools the states, mixes in the global feature, and drops numbers by item."""

    modalities = (TEXT, IMAGE)

    def __init__(self, share=0.0, layout=LAYOUT, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.layout = layout
        vectors = self.layout.num_candidates
        self.inner = nn.ModuleDict({each: nn.Linear(2 * WIDTH, 8) for each in self.modalities})
        self.outer = nn.ModuleDict({each: nn.Linear(8, vectors * DIM) for each in self.modalities})
        self.dropout = ItemDropout(share, 0)
        self.passes = 0

    def forward(self, modality, encoded, dropout_keys=None):
        self.passes += 1
        mask = encoded.mask[..., None]
        pooled = (encoded.hidden_states * mask).sum(dim=1) / mask.sum(dim=1)
        both = torch.cat((encoded.global_feature, pooled), dim=1)
        with item_dropout(self, dropout_keys):
            hidden = self.dropout(torch.tanh(self.inner[modality](both)))
        return nn.functional.normalize(self.outer[modality](hidden).view(len(both), -1, DIM), dim=2)


def encoded(num_items, seed):
    """Media of one to three states each."""
    chance = torch.Generator().manual_seed(seed)
    features = torch.randn(num_items, WIDTH, generator=chance)
    states = torch.randn(num_items, 3, WIDTH, generator=chance)
    mask = torch.arange(3) < torch.randint(1, 4, (num_items, 1), generator=chance)
    return EncodedMedia(features, states * mask[..., None], mask)


def toy_pairs(num_pairs=24, same=0):
    """Pairs of which the first ``same`` are one item."""
    ids = ["same"] * same + [f"pair {n}" for n in range(same, num_pairs)]
    return TrainingPairs(encoded(num_pairs, 1), encoded(num_pairs, 2), tuple(ids))


def contrast(source, target, same_item=None, temperature=0.2):
    """InfoNCE on the mean cosine of aligned vectors."""
    logits = torch.einsum("akd,bkd->ab", source, target) / source.shape[1] / temperature
    if same_item is not None:
        others = same_item & ~torch.eye(len(same_item), dtype=torch.bool, device=logits.device)
        logits = logits.masked_fill(others, -torch.inf)
    own = logits.diagonal()
    return (logits.logsumexp(0) + logits.logsumexp(1) - 2 * own).mean() / 2


class ToyPolicy(nn.Module):
    """Logits of every state from the mean feedback and the candidates."""

    def __init__(self, share=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(VECTORS + DIM, STATES * ACTIONS)
        self.dropout = nn.Dropout(share)

    def forward(self, inputs):
        seen = torch.cat((inputs.feedback.mean(dim=(1, 3)), inputs.candidates.mean(dim=1)), dim=1)
        return self.layer(self.dropout(seen)).view(-1, STATES, ACTIONS)


def toy_examples(samples=SAMPLES):
    chance = torch.Generator().manual_seed(3)
    inputs = PolicyInputs(
        Actions(coarse_to_fine(LAYOUT)).states,
        torch.randn(samples, VECTORS, DIM, generator=chance),
        torch.randn(samples, STATES, VECTORS, 6, generator=chance),
        torch.randint(50, (samples, STATES, 6), generator=chance),
        torch.randn(samples, STATES, 6, generator=chance),
    )
    return PolicyExamples(inputs, torch.randn(samples, STATES, ACTIONS, generator=chance))


def expected_loss(logits, utilities):
    return -(logits.softmax(dim=-1) * utilities).sum(dim=-1).mean()


STAGE_ONE = TrainingSettings(
    optimizer=OptimizerSettings(learning_rate=0.02),
    epochs=3,
    batch_size=8,
    log_steps=1,
    device=DeviceChoice.CPU,
    checkpoint_seconds=1e9,
)
STAGE_TWO = PolicyTrainingSettings(
    optimizer=OptimizerSettings(learning_rate=0.02),
    epochs=3,
    batch_size=8,
    log_steps=1,
    device=DeviceChoice.CPU,
    checkpoint_seconds=1e9,
)


def validate(model):
    """Any figure that depends on the weights alone."""
    return {"mAP": float(sum(each.double().sum() for each in model.parameters()))}


def train_one(folder, model=None, objective=contrast, pairs=None, changes=None, **listeners):
    """Stage I in short; the trained model and the summary."""
    model = model or ToyEmbedder(share=0.3)
    settings = replace(STAGE_ONE, **changes or {})
    summary = train_embedder(model, pairs or toy_pairs(), objective, settings, folder, **listeners)
    return model, summary


def train_two(folder, policy=None, examples=None, changes=None, **listeners):
    """Stage II in short; the trained policy and the summary."""
    policy = policy or ToyPolicy(share=0.3)
    settings = replace(STAGE_TWO, **changes or {})
    summary = train_policy(
        policy, examples or toy_examples(), expected_loss, settings, folder, **listeners
    )
    return policy, summary


def same_bits(one, other):
    """Whether two models or states are equal bit for bit."""
    one, other = (
        each.state_dict() if isinstance(each, nn.Module) else each for each in (one, other)
    )
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def differ(one, other):
    """The largest relative difference of two gradients, relative to the longer one."""
    length = max(float(one.norm()), float(other.norm()))
    return float((one - other).norm()) / max(length, 1e-30)
