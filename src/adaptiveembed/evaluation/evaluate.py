"""From tasks and an allocator to per-query results (paper, App. B).

Only the ranks of the positives are needed: ``rank_table`` counts them, no ranking is written out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adaptiveembed.allocation.allocator import Allocator
from adaptiveembed.allocation.fixed import FixedAllocator
from adaptiveembed.allocation.oracle import best_places, chosen_selections, oracle_choice
from adaptiveembed.errors import EmptyBatchError, SettingError, ShapeError
from adaptiveembed.evaluation.protocol import RetrievalTask
from adaptiveembed.evaluation.results import Evaluation, TaskEvaluation
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.retrieval.rank_table import rank_table
from adaptiveembed.shapes import QueryIndices, Ranks, RankTable
from adaptiveembed.structure.candidates import CAES
from adaptiveembed.structure.direction import Direction
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace

AllocatorPerDirection = Mapping[Direction, Allocator | Selection]


@dataclass(frozen=True, eq=False)
class SelectionRanks:
    """The ranks of a task's positives under every selection of a space.

    ``ranks`` is [selections, queries, positives], selections in the order of ``space.nodes``. Every
    fixed selection, the oracle and any allocation within the space can be read off one table.
    """

    task: RetrievalTask
    space: SelectionSpace
    ranks: RankTable

    def under(self, selections: Sequence[Selection]) -> Ranks:
        """The ranks when each query has the given selection."""
        ranks: Ranks = self.ranks[self.places(selections), np.arange(len(self.task))]
        return ranks

    def places(self, selections: Sequence[Selection]) -> QueryIndices:
        """The index in the space of each query's selection."""
        if len(selections) != len(self.task):
            raise ShapeError(
                f"got {len(selections)} selections for {len(self.task)} queries; give one per query"
            )
        return np.array([self.space.index(one) for one in selections], dtype=np.int64)


def evaluate(
    tasks: Sequence[RetrievalTask],
    allocator: Allocator | Selection | AllocatorPerDirection,
    method: str | None = None,
) -> Evaluation:
    """How well the tasks' queries are answered under the selections that the allocator gives them.

    A selection stands for the allocator that gives it to everyone, a mapping for one allocator or
    selection per direction. ``method`` is the name in reports; without one, a fixed selection is
    named by itself and an allocator by its class.
    """
    _require_tasks(tasks)
    allocators = [_allocator_for(task.direction, allocator) for task in tasks]
    results = tuple(map(_evaluate_task, tasks, allocators))
    names = dict.fromkeys(map(_method_name, allocators))
    return Evaluation(method or ", ".join(names), results)


def evaluate_every_selection(task: RetrievalTask, space: SelectionSpace) -> SelectionRanks:
    """The ranks of the task's positives under all selections, in one pass over the gallery."""
    ranks = rank_table(task.gallery, task.queries, task.positives, space.nodes)
    return SelectionRanks(task, space, ranks)


def fixed_evaluation(
    tables: Sequence[SelectionRanks], selection: Selection, method: str | None = None
) -> Evaluation:
    """What ``evaluate`` says of a fixed selection, read off tables that hold it."""
    _require_tasks(tables)
    results = tuple(
        _read_off(one, (selection,) * len(one.task), selection.capacity) for one in tables
    )
    return Evaluation(method or _method_name(FixedAllocator(selection)), results)


def allocation_evaluation(
    tables: Sequence[SelectionRanks],
    selections: Sequence[tuple[Selection, ...]],
    method: str = "adaptive",
) -> Evaluation:
    """What ``evaluate`` says of an allocator that gave the tables' queries these selections."""
    _require_tasks(tables)
    results = tuple(
        _read_off(one, chosen, one.space.root.layout.num_candidates)
        for one, chosen in zip(tables, selections, strict=True)
    )
    return Evaluation(method, results)


def oracle_evaluation(tables: Sequence[SelectionRanks], method: str = "oracle") -> Evaluation:
    """What ``evaluate`` says of the oracle over the tables' space, read off the tables."""
    _require_tasks(tables)
    return allocation_evaluation(tables, list(map(oracle_selections, tables)), method)


def oracle_selections(table: SelectionRanks) -> tuple[Selection, ...]:
    """The oracle's selection for every query of the table."""
    return chosen_selections(oracle_choice(table.ranks, table.space), table.space)


def best_fixed(tables: Sequence[SelectionRanks]) -> Selection:
    """The one selection whose mAP, averaged over the tables, is highest.

    Ties go to the smaller capacity, then to the selection that comes first in the space.
    """
    _require_tasks(tables)
    space = _common_space(tables)
    scores = np.mean([average_precision(one.ranks).mean(axis=-1) for one in tables], axis=0)
    (best,) = chosen_selections(best_places(scores[:, None], space), space)
    return best


def _evaluate_task(task: RetrievalTask, allocator: Allocator) -> TaskEvaluation:
    caes = allocator.allocate(task.queries)
    _require_all_allocated(task, caes)
    ranks = _ranks_under(task, caes)
    return _result(task, caes.selections, ranks, _vectors_stored(allocator, task))


def _ranks_under(task: RetrievalTask, caes: CAES) -> Ranks:
    """The ranks of the task's positives, queries of equal selection counted together."""
    ranks = np.zeros_like(task.positives)
    for selection, members in caes.buckets().items():
        queries = members.numpy()
        positives = task.positives[queries]
        ranks[queries] = rank_table(task.gallery, task.queries[members], positives, [selection])[0]
    return ranks


def _read_off(
    table: SelectionRanks, selections: tuple[Selection, ...], vectors_stored: int
) -> TaskEvaluation:
    return _result(table.task, selections, table.under(selections), vectors_stored)


def _result(
    task: RetrievalTask, selections: tuple[Selection, ...], ranks: Ranks, vectors_stored: int
) -> TaskEvaluation:
    return TaskEvaluation(
        direction=task.direction,
        query_ids=task.query_ids,
        selections=selections,
        ranks=ranks,
        gallery_size=len(task.gallery),
        dim=task.queries.dim,
        gallery_vectors_stored=vectors_stored,
    )


def _common_space(tables: Sequence[SelectionRanks]) -> SelectionSpace:
    first = tables[0].space
    for other in tables[1:]:
        if other.space != first:
            raise SettingError(
                f"the tables rank under different spaces, of {len(first)} and of "
                f"{len(other.space)} selections; make all of them with one space"
            )
    return first


def _vectors_stored(allocator: Allocator, task: RetrievalTask) -> int:
    if isinstance(allocator, FixedAllocator):
        return allocator.selection.capacity
    return task.gallery.layout.num_candidates


def _allocator_for(
    direction: Direction, allocator: Allocator | Selection | AllocatorPerDirection
) -> Allocator:
    if isinstance(allocator, Selection):
        return FixedAllocator(allocator)
    if not isinstance(allocator, Mapping):
        _require_allocator(allocator)
        return allocator
    if direction not in allocator:
        raise SettingError(
            f"no allocator was given for direction {direction}; the mapping has "
            f"{', '.join(map(str, allocator)) or 'none'}, add one for every task"
        )
    return _allocator_for(direction, allocator[direction])


def _require_allocator(given: object) -> None:
    if isinstance(given, str):
        raise SettingError(
            f"an allocator or a selection is needed, got the text {given!r}; "
            f"use Selection.parse({given!r}, layout)"
        )
    if not isinstance(given, Allocator):
        raise SettingError(
            f"an allocator or a selection is needed, got {given!r}; give a Selection, a mapping by "
            "direction, or an object whose method allocate returns a CAES"
        )


def _method_name(allocator: Allocator) -> str:
    if isinstance(allocator, FixedAllocator):
        return f"fixed {allocator.selection}"
    return type(allocator).__name__


def _require_all_allocated(task: RetrievalTask, caes: CAES) -> None:
    if len(caes) != len(task):
        raise ShapeError(
            f"the allocator returned {len(caes)} items for {len(task)} queries; an allocator "
            "returns every item it was given, in the same order"
        )


def _require_tasks(tasks: object) -> None:
    if not isinstance(tasks, Sequence):
        raise SettingError(
            f"a list of tasks or tables is needed, got {type(tasks).__name__}; "
            "put it in a list, also a single one"
        )
    if not tasks:
        raise EmptyBatchError("nothing was given to evaluate; give at least one retrieval task")
