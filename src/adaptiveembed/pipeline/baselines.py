"""Encoders as they are, on the queries of a dataset: what trained runs are compared with.

A baseline is a dataset folder of its own, made of the same manifest by the encoder to be compared.
Its queries are asked in the full gallery, as those of a run are.

    single    the cosine of global features
    maxsim    MaxSim of all hidden states, as of ColQwen2
    pooled    MaxSim of hidden states that Ward's clustering brought down to 2, 4 and 8
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.errors import EncoderError, NotNormalizedError, SettingError
from adaptiveembed.evaluation.evaluate import evaluate
from adaptiveembed.evaluation.results import Evaluation, TaskEvaluation
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.dataset import Dataset, open_dataset
from adaptiveembed.pipeline.evaluating import asked_rows
from adaptiveembed.pipeline.inputs import EncoderFacts
from adaptiveembed.pipeline.paired import PairedFeatures
from adaptiveembed.pipeline.reporting import MethodResults
from adaptiveembed.pipeline.representing import pair_tasks
from adaptiveembed.shapes import Ranks
from adaptiveembed.similarity.pooling import pooled
from adaptiveembed.similarity.ragged import RaggedSets, ragged_maxsim_matrix
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import Features
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.progress import Progress, silent
from adaptiveembed.structure.selection import Selection

POOLED_TO = (2, 4, 8)
"""As many vectors as AdaptiveEmbed's larger selections have."""

ITEMS_AT_ONCE = 128
"""Items whose hidden states are read at a time, which bounds the memory."""

HELD_BYTES = 1 << 30
"""Queries that are held while the gallery passes by; more of them let it pass by again."""

TIE = 1e-9
"""Scores that are nearer than this for each vector of the query are equal: rounding takes less, and
equal items must tie whatever tile they are in."""

Sets = Callable[[np.ndarray], RaggedSets]
"""The unit vectors of the items at these rows, in double precision."""


class BaselineKind(StrEnum):
    """How the items of an encoder are compared."""

    SINGLE = "single"
    """By their global features."""
    MAXSIM = "maxsim"
    """By all of their hidden states."""
    POOLED = "pooled"
    """By their hidden states, pooled to a few."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """The pairs of a dataset as another encoder sees them, in the order of that dataset."""

    kind: BaselineKind
    name: str
    """What its folder is called."""
    pairs: PairedFeatures
    encoders: Mapping[Modality, EncoderFacts]


def open_baselines(chosen: Sequence[tuple[str, Path]], dataset: Dataset) -> tuple[Baseline, ...]:
    """The baselines in folders of the same pairs as the dataset, each given with its kind."""
    found = tuple(open_baseline(_known_kind(kind), folder, dataset) for kind, folder in chosen)
    called = [(one.kind, one.name) for one in found]
    twice = next((one for one in called if called.count(one) > 1), None)
    if twice:
        raise SettingError(
            f"{twice[0]}={twice[1]} is given twice, and a row is called by the name of its folder; "
            f"give it once, or rename one of the folders"
        )
    return found


def open_baseline(kind: BaselineKind, folder: Path, dataset: Dataset) -> Baseline:
    """The baseline in a folder of the same pairs as the dataset, if its sides can be compared."""
    asked_rows(dataset.pairs)
    found = open_dataset(folder)
    require_same_pairs(found, dataset)
    _require_one_space(kind, found)
    pairs = _in_order_of(found.pairs, dataset.pairs)
    if kind is not BaselineKind.SINGLE:
        _require_states(folder, pairs)
    return Baseline(kind, folder.absolute().name, pairs, found.encoders)


def evaluate_baseline(baseline: Baseline, announce: Announce = unannounced) -> MethodResults:
    """The rows of one baseline: one, or one for every number that states are pooled to."""
    rows = {
        BaselineKind.SINGLE: _single_row,
        BaselineKind.MAXSIM: _maxsim_row,
        BaselineKind.POOLED: _pooled_rows,
    }[baseline.kind](baseline, announce)
    return MethodResults(
        f"{baseline.kind}={baseline.name}", tuple(rows), encoders=baseline.encoders
    )


def _single_row(baseline: Baseline, announce: Announce) -> Iterator[Evaluation]:
    """By the canonical kernel of SetSim, which between single vectors is their cosine."""
    pairs, layout, name = baseline.pairs, GroupLayout((1,)), f"single vector ({baseline.name})"
    progress = announce(f"evaluating {name}")
    source, target = (_global_vectors(pairs, one, layout) for one in _modalities(pairs))
    yield evaluate(
        pair_tasks(pairs, (source, target), asked_rows(pairs)), Selection.full(layout), name
    )
    progress(len(pairs), len(pairs))


def _global_vectors(
    pairs: PairedFeatures, modality: Modality, layout: GroupLayout
) -> CandidateSets:
    features = pairs.features(modality).global_features()
    lengths = torch.linalg.vector_norm(features.double(), dim=-1)
    _require_directions(lengths[:, None], pairs.ids, modality)
    return CandidateSets.normalized(features.float().unsqueeze(1), layout)


def _maxsim_row(baseline: Baseline, announce: Announce) -> Iterator[Evaluation]:
    pairs = baseline.pairs
    sides = {one: _state_sets(pairs, one) for one in _modalities(pairs)}
    yield maxsim_evaluation(f"MaxSim ({baseline.name})", pairs, sides, announce)


def _pooled_rows(baseline: Baseline, announce: Announce) -> Iterator[Evaluation]:
    pairs = baseline.pairs
    sides = {
        one: pooled_sets(
            _state_sets(pairs, one), pairs.ids, announce(f"pooling {one} ({baseline.name})")
        )
        for one in _modalities(pairs)
    }
    for count in POOLED_TO:
        name = f"pooled to {count} ({baseline.name})"
        chosen = {one: _held_sets(sets[count]) for one, sets in sides.items()}
        yield maxsim_evaluation(name, pairs, chosen, announce)


def pooled_sets(
    sets: Sets, ids: Sequence[str], progress: Progress = silent
) -> dict[int, RaggedSets]:
    """All items, by the number of vectors that they are pooled to; read once, some at a time."""
    parts: dict[int, list[RaggedSets]] = {count: [] for count in POOLED_TO}
    for rows in _parts(np.arange(len(ids))):
        whole = sets(rows)
        try:
            few = _pooled_to_each(whole)
        except NotNormalizedError as error:
            first, last = ids[rows[0]], ids[rows[-1]]
            raise NotNormalizedError(f"among items {first!r} to {last!r}: {error}") from error
        for count, found in parts.items():
            found.append(few[count])
        progress(int(rows[-1]) + 1, len(ids))
    return {
        count: RaggedSets(
            torch.cat([one.vectors for one in found]), torch.cat([one.mask for one in found])
        )
        for count, found in parts.items()
    }


def _pooled_to_each(sets: RaggedSets) -> dict[int, RaggedSets]:
    found = {count: pooled(sets, count) for count in POOLED_TO}
    return {
        count: RaggedSets(few.vectors.float().cpu(), few.mask.cpu()) for count, few in found.items()
    }


def maxsim_evaluation(
    name: str,
    pairs: PairedFeatures,
    sides: Mapping[Modality, Sets],
    announce: Announce = unannounced,
) -> Evaluation:
    """Both directions of the full-gallery protocol by MaxSim; the capacities are mean numbers."""
    directions = (pairs.direction, pairs.direction.reversed)
    return Evaluation(
        name,
        tuple(
            _maxsim_direction(pairs, sides, one, announce(f"evaluating {name} {one}"))
            for one in directions
        ),
    )


def _maxsim_direction(
    pairs: PairedFeatures, sides: Mapping[Modality, Sets], direction: Direction, progress: Progress
) -> TaskEvaluation:
    asked = asked_rows(pairs)
    queries, gallery = sides[direction.source], sides[direction.target]
    found = counterpart_ranks(queries, gallery, asked, len(pairs), progress)
    return TaskEvaluation(
        direction=direction,
        query_ids=tuple(pairs.ids[row] for row in asked),
        selections=tuple(Selection.full(GroupLayout((count,))) for count in found.query_vectors),
        ranks=found.ranks,
        gallery_size=len(pairs),
        dim=pairs.features(direction.source).width,
        gallery_vectors_stored=found.gallery_vectors,
        compared=np.full(len(asked), found.gallery_vectors),
    )


class CounterpartRanks(NamedTuple):
    """Where each query found its counterpart, and how many vectors were compared."""

    ranks: Ranks
    query_vectors: list[int]
    """Of each query."""
    gallery_vectors: float
    """Of a gallery item, on average."""


def counterpart_ranks(
    queries: Sets, gallery: Sets, asked: np.ndarray, size: int, progress: Progress = silent
) -> CounterpartRanks:
    """Pessimistic ranks [queries, 1] by MaxSim of each query's own row in the gallery (R7).

    Neither side is held as a whole, nor are the scores.
    """
    ranks: list[int] = []
    vectors: list[int] = []
    met = 0

    def tell(done: int, more: int, items: int) -> None:
        progress(done * size + more * items, len(asked) * size)

    for held in _held(queries, gallery, asked):
        counts, met = _counts(held, gallery, size, partial(tell, len(ranks), sum(map(len, held))))
        ranks += counts.tolist()
        vectors += [one for each in held for one in each.sets.mask.sum(dim=1).tolist()]
    return CounterpartRanks(np.array(ranks, np.int64)[:, None], vectors, met / size)


def _counts(
    held: Sequence[_Asked], gallery: Sets, size: int, tell: Callable[[int], None]
) -> tuple[Tensor, int]:
    """How many items count against each query that is held, and how many vectors all items have."""
    counts, met = torch.zeros((), dtype=torch.int64), 0
    for rows in _parts(np.arange(size)):
        items = gallery(rows)
        counts = torch.cat([each.beaten_by(items) for each in held]) + counts
        met += int(items.mask.sum())
        tell(int(rows[-1]) + 1)
    return counts, met


@dataclass(frozen=True, eq=False)
class _Asked:
    """Some queries, and from which score on a gallery item counts against them."""

    sets: RaggedSets
    needed: Tensor  # [queries]

    def __len__(self) -> int:
        return len(self.needed)

    def beaten_by(self, items: RaggedSets) -> Tensor:
        """How many of the items score as much as each query's counterpart, itself among them."""
        scores = ragged_maxsim_matrix(self.sets, items)
        return (scores >= self.needed.unsqueeze(1)).sum(dim=1)


def _held(queries: Sets, gallery: Sets, asked: np.ndarray) -> Iterator[list[_Asked]]:
    """The queries, as many at a time as may be held."""
    held: list[_Asked] = []
    for rows in _parts(asked):
        held.append(_asked(queries(rows), gallery(rows)))
        if sum(each.sets.vectors.nbytes for each in held) >= HELD_BYTES:
            yield held
            held = []
    if held:
        yield held


def _asked(sets: RaggedSets, counterparts: RaggedSets) -> _Asked:
    pairs = [slice(place, place + 1) for place in range(len(sets))]
    own = [ragged_maxsim_matrix(sets[one], counterparts[one])[0] for one in pairs]
    return _Asked(sets, torch.cat(own) - TIE * sets.mask.sum(dim=1))


def _state_sets(pairs: PairedFeatures, modality: Modality) -> Sets:
    """The hidden states of one side, read whenever they are asked for."""
    features, device = pairs.features(modality), _fastest_device()

    def read(rows: np.ndarray) -> RaggedSets:
        media = features.read(rows)
        states = media.hidden_states.double().masked_fill(~media.mask.unsqueeze(-1), 0)
        lengths = torch.linalg.vector_norm(states, dim=-1).masked_fill(~media.mask, 1)
        _require_directions(lengths, [pairs.ids[row] for row in rows], modality)
        return RaggedSets((states / lengths.unsqueeze(-1)).to(device), media.mask.to(device))

    return read


def _held_sets(sets: RaggedSets) -> Sets:
    """Sets that are in memory, in double precision once they are asked for."""
    device = _fastest_device()

    def read(rows: np.ndarray) -> RaggedSets:
        chosen = torch.from_numpy(rows)
        return RaggedSets(
            sets.vectors[chosen].to(device, torch.float64), sets.mask[chosen].to(device)
        )

    return read


def _fastest_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), ITEMS_AT_ONCE):
        yield rows[start : start + ITEMS_AT_ONCE]


def _modalities(pairs: PairedFeatures) -> tuple[Modality, Modality]:
    return pairs.direction.source, pairs.direction.target


def _known_kind(name: str) -> BaselineKind:
    try:
        return BaselineKind(name)
    except ValueError:
        raise SettingError(
            f"there is no baseline {name!r}; choose one of {', '.join(BaselineKind)}"
        ) from None


def _in_order_of(pairs: PairedFeatures, needed: PairedFeatures) -> PairedFeatures:
    """The same pairs in the order and the direction of the others."""
    found = pairs.take(pairs.rows_of(needed.ids))
    source, target = (found.features(one) for one in _modalities(needed))
    return PairedFeatures(needed.direction, needed.ids, source, target, needed.splits, pairs.name)


def require_same_pairs(found: Dataset, needed: Dataset) -> None:
    """Refuse a dataset of other modalities, ids, splits or texts than another one has."""
    if set(found.encoders) != set(needed.encoders):
        raise SettingError(
            f"{found.folder} is of {' and '.join(found.encoders)}, and {needed.folder} of "
            f"{' and '.join(needed.encoders)}; give a dataset of these"
        )
    difference = next(_differences(found, needed), None)
    if difference:
        raise SettingError(
            f"{difference}; {found.folder} has {_counted(found.pairs)} and {needed.folder} "
            f"{_counted(needed.pairs)}: encode one manifest into both, without the pairs that "
            f"either of them leaves out"
        )


def _differences(found: Dataset, needed: Dataset) -> Iterator[str]:
    """In words, what one dataset has of a pair and the other has not."""
    splits = dict(zip(found.pairs.ids, found.pairs.splits, strict=True))
    texts = {pair.id: pair.text for pair in found.manifest}
    for one, split, pair in zip(
        needed.pairs.ids, needed.pairs.splits, needed.manifest, strict=True
    ):
        if one not in splits:
            yield f"pair {one!r} is in {needed.folder} and not in {found.folder}"
        elif splits[one] != split:
            yield f"pair {one!r} is of split {splits[one]!r} in {found.folder} and of {split!r}"
        elif None not in (texts[one], pair.text) and texts[one] != pair.text:
            yield f"pair {one!r} has another text in {found.folder}"
    known = set(needed.pairs.ids)
    yield from (
        f"pair {one!r} is in {found.folder} and not in {needed.folder}"
        for one in found.pairs.ids
        if one not in known
    )


def _counted(pairs: PairedFeatures) -> str:
    return f"{len(pairs):,} pairs with {len(pairs.queries):,} queries"


def _require_one_space(kind: BaselineKind, dataset: Dataset) -> None:
    (one, facts), (other, others) = dataset.encoders.items()
    if facts.space != others.space:
        raise EncoderError(
            f"{kind}={dataset.folder} compares {one} by {facts.name} with {other} by "
            f"{others.name}, which are of two spaces ({facts.space!r} and {others.space!r}); give "
            f"features of an encoder of both. For encoders that were never trained together there "
            f"is the row 'fixed 1+0' of a run, which aligns them by CCA"
        )


def _require_states(folder: Path, pairs: PairedFeatures) -> None:
    """Refuse features whose only state is the global feature."""
    first = np.arange(min(len(pairs), ITEMS_AT_ONCE))
    if all(_are_single(side, first) for side in (pairs.source, pairs.target)):
        raise EncoderError(
            f"{folder} has one vector for each item, and more are needed; encode it again with "
            f"hidden states (--states all), or take it as single={folder}"
        )


def _are_single(features: Features, rows: np.ndarray) -> bool:
    return bool((features.read(rows).mask.sum(dim=1) == 1).all())


def _require_directions(lengths: Tensor, ids: Sequence[str], modality: Modality) -> None:
    wrong = ~((lengths > 0) & lengths.isfinite())
    if wrong.any():
        item, place = wrong.nonzero()[0].tolist()
        raise NotNormalizedError(
            f"vector {place} of {modality} {ids[item]!r} has length "
            f"{float(lengths[item, place]):.3g} and no direction; leave the pair out of the "
            f"manifest, or mend the encoder"
        )
