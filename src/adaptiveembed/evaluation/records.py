"""Evaluations as files, query by query, so that methods can be compared long after they ran.

evaluation.json     methods, directions, query ids and what is stored where
evaluation.npz      ranks and capacities of every method and direction
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from adaptiveembed.errors import EmptyBatchError, ModelFormatError
from adaptiveembed.evaluation.results import Evaluation, TaskEvaluation
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection

FORMAT, VERSION = "adaptiveembed.evaluation", 1
FACTS, ARRAYS = "evaluation.json", "evaluation.npz"


def write_evaluations(folder: Path, evaluations: Sequence[Evaluation]) -> None:
    """Write evaluations of the same queries into a folder, which may hold other things."""
    if not evaluations:
        raise EmptyBatchError("no evaluation was given to write; give at least one")
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    methods = [_method(number, each, arrays) for number, each in enumerate(evaluations)]
    queries = [list(one.query_ids) for one in evaluations[0].directions]
    facts = {"format": FORMAT, "version": VERSION, "queries": queries, "methods": methods}
    with (folder / ARRAYS).open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    (folder / FACTS).write_text(json.dumps(facts, ensure_ascii=False) + "\n", encoding="utf-8")


def read_evaluations(folder: Path) -> tuple[Evaluation, ...]:
    """The evaluations of a folder."""
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        _require_format(facts)
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            stored = {name: arrays[name] for name in arrays.files}
        return tuple(_evaluation(method, facts["queries"], stored) for method in facts["methods"])
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise ModelFormatError(
            f"{folder} holds no evaluation that can be read ({error}); evaluate again"
        ) from error


def _require_format(facts: Any) -> None:  # noqa: ANN401 - whatever the file holds
    if facts["format"] != FORMAT or facts["version"] != VERSION:
        raise ValueError(f"it is {facts['format']} of version {facts['version']}")


def _evaluation(
    facts: dict[str, Any], queries: list[list[str]], arrays: dict[str, np.ndarray]
) -> Evaluation:
    pairs = zip(facts["directions"], queries, strict=True)
    return Evaluation(
        facts["name"], tuple(_direction(one, tuple(ids), arrays) for one, ids in pairs)
    )


def _method(number: int, evaluation: Evaluation, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What is said of one method; its numbers are added to the arrays."""
    directions = []
    for place, one in enumerate(evaluation.directions):
        name = f"{number}.{place}"
        kinds = list(dict.fromkeys(one.selections))
        index = {kind: row for row, kind in enumerate(kinds)}
        arrays[f"{name}.ranks"] = one.ranks
        arrays[f"{name}.selections"] = np.array([index[each] for each in one.selections])
        if one.compared is not None:
            arrays[f"{name}.compared"] = one.compared
        directions.append(
            {
                "name": name,
                "source": one.direction.source,
                "target": one.direction.target,
                "selections": [[str(kind.layout), str(kind)] for kind in kinds],
                "gallery_size": one.gallery_size,
                "dim": one.dim,
                "gallery_vectors_stored": one.gallery_vectors_stored,
            }
        )
    return {"name": evaluation.method, "directions": directions}


def _direction(
    facts: dict[str, Any], query_ids: tuple[str, ...], arrays: dict[str, np.ndarray]
) -> TaskEvaluation:
    name = facts["name"]
    kinds = [Selection.parse(text, GroupLayout.parse(of)) for of, text in facts["selections"]]
    return TaskEvaluation(
        direction=Direction(Modality(facts["source"]), Modality(facts["target"])),
        query_ids=query_ids,
        selections=tuple(kinds[row] for row in arrays[f"{name}.selections"]),
        ranks=arrays[f"{name}.ranks"],
        gallery_size=facts["gallery_size"],
        dim=facts["dim"],
        gallery_vectors_stored=facts["gallery_vectors_stored"],
        compared=arrays.get(f"{name}.compared"),
    )
