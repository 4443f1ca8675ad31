"""The whole way on made-up scenes: pictures and narratives to vectors, a policy, and a report.

    demo-output/
      demo.json      what it is a demo of
      scenes/        the encoded corpus
      adaptive/      the run of AdaptiveEmbed, with its model
      metaembed/     the run of the baseline
      report.html    the report, beside it the same as .md and .json, figures, and every rank
      query.png      a picture to search with

What is done is kept, so that the same call goes on where it was stopped.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from PIL import Image as Pillow

from adaptiveembed.data.media import Image, Media
from adaptiveembed.data.scenes.corpus import scene_id
from adaptiveembed.errors import SettingError
from adaptiveembed.evaluation.records import ARRAYS, FACTS, read_evaluations
from adaptiveembed.evaluation.report import Report
from adaptiveembed.pipeline.announcing import Announce, unannounced
from adaptiveembed.pipeline.dataset import Dataset, open_dataset
from adaptiveembed.pipeline.fitting import fit
from adaptiveembed.pipeline.page import (
    FIGURES,
    PAGE,
    MediaOf,
    PageContent,
    examples_of_runs,
    write_page,
)
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.pipeline.reporting import Results, evaluate_runs, write_results
from adaptiveembed.pipeline.scenes import SceneCorpus, encode_scenes
from adaptiveembed.pipeline.study import seeded
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.progress import Progress

RECORD = "demo.json"
SCENES, ADAPTIVE, METAEMBED, QUERY = "scenes", "adaptive", "metaembed", "query.png"
REPORTS = ("report.md", "report.json", ARRAYS, FACTS)
MADE = (SCENES, ADAPTIVE, METAEMBED, FIGURES, PAGE, QUERY, *REPORTS, RECORD)
"""Everything that a demo writes; nothing else is ever removed."""

RECIPES = {ADAPTIVE: "demo", METAEMBED: "demo-metaembed"}
TITLES = {ADAPTIVE: "AdaptiveEmbed", METAEMBED: "MetaEmbed"}
QUERY_PART = 6
"""One scene of so many is a query."""

NOTE = (
    "These scenes are made up by a program, and what adaptive capacity can gain on them was "
    "decided there: a figure on this page says that the method works here, and nothing about "
    "photographs. The encoder is a few fixed formulas without learned weights, so that nothing "
    "is downloaded; the single vector, 1+0, is its linear alignment of both sides (regularised "
    "CCA). All of it is kept small enough for a few minutes on two cores."
)


@dataclass(frozen=True)
class DemoSettings:
    """What the command line says of the demo."""

    output: Path
    """Where everything is written."""
    items: int
    """Scenes in all; a sixth of them are queries, all of them are the gallery."""
    seed: int = 0
    """Which scenes are made, and what weights start from."""
    assignments: tuple[str, ...] = ()
    """Changes of both recipes, such as ``representation.training.epochs=5``."""

    @property
    def corpus(self) -> SceneCorpus:
        """The scenes of the demo; its last ones are the queries."""
        queries = self.items // QUERY_PART
        return SceneCorpus(Modality.IMAGE, self.items - queries, queries, self.seed)

    @property
    def record(self) -> dict[str, object]:
        """What has to be the same for a demo to go on."""
        return {"items": self.items, "seed": self.seed, "set": list(self.assignments)}


@dataclass(frozen=True, eq=False)
class Demo:
    """A finished demo."""

    folder: Path
    dataset: Dataset
    report: Report
    """Its tables; where it was finished before, those of the measures alone."""

    @property
    def run(self) -> Path:
        """The run of AdaptiveEmbed."""
        return self.folder / ADAPTIVE

    @property
    def page(self) -> Path:
        return self.folder / PAGE

    @property
    def picture(self) -> Path:
        """The picture of the first query, as a file."""
        return self.folder / QUERY


def make_demo(settings: DemoSettings, announce: Announce = unannounced) -> Demo:
    """Do what is left of the demo: encode, train twice, evaluate, and write the report."""
    begin_demo(settings)
    corpus, folder = settings.corpus, settings.output
    encode_scenes(corpus, folder / SCENES, announce)
    dataset = open_dataset(folder / SCENES)
    for name, recipe in RECIPES.items():
        fit(
            JointPairs((dataset.pairs,)),
            read_recipe(recipe, [*seeded(settings.seed), *settings.assignments]),
            folder / name,
            dataset.encoders,
            announce=_titled(TITLES[name], announce),
            folders=[dataset.folder],
        )
    if not (folder / PAGE).exists():
        return Demo(folder, dataset, _evaluate(corpus, dataset, folder, announce).report)
    return Demo(folder, dataset, Report.from_evaluations(read_evaluations(folder), SCENES))


def begin_demo(settings: DemoSettings) -> None:
    """Write down what the demo is of; a folder of another demo, or of anything else, is refused."""
    folder = settings.output
    if folder.is_file():
        raise SettingError(f"{folder} is a file; give a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    known = _recorded(folder)
    if known is None and any(folder.iterdir()):
        raise SettingError(f"folder {folder} holds something else; give a new or an empty one")
    if known is not None and known != settings.record:
        changed = [name for name, value in settings.record.items() if known.get(name) != value]
        raise SettingError(
            f"{folder} holds a demo of other {' and '.join(changed) or 'settings'}; give the same "
            f"as then, another --output, or --fresh to begin anew"
        )
    if known is None:
        (folder / RECORD).write_text(json.dumps(settings.record) + "\n", encoding="utf-8")


def remove_demo(folder: Path) -> None:
    """Remove what a demo wrote into the folder, if there is one; its record goes last."""
    if not (folder / RECORD).exists():
        return
    for name in MADE:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)


def scenes_media(corpus: SceneCorpus) -> MediaOf:
    """The media of scenes, made again."""
    numbers = {scene_id(number): number for number in range(corpus.training + corpus.queries)}

    def media_of(item: str, modality: Modality) -> Media | None:
        return corpus.media(numbers[item], modality) if item in numbers else None

    return media_of


def _evaluate(corpus: SceneCorpus, dataset: Dataset, folder: Path, announce: Announce) -> Results:
    """Evaluate both runs and write everything; the page, which says that it is done, comes last."""
    runs = [folder / name for name in RECIPES]
    results = evaluate_runs(runs, dataset, announce)
    write_results(results, folder)
    _write_picture(corpus, folder / QUERY)
    content = PageContent(
        scenes_media(corpus), examples_of_runs(results, runs), runs, NOTE, _facts(corpus)
    )
    write_page(results, dataset, folder, content)
    return results


def _facts(corpus: SceneCorpus) -> dict[str, str]:
    return {
        "corpus": f"built-in scenes, seed {corpus.seed}",
        "again": "adaptiveembed demo --fresh",
    }


def _write_picture(corpus: SceneCorpus, path: Path) -> None:
    """The picture of the first query."""
    picture = corpus.media(corpus.training, Modality.IMAGE)
    assert isinstance(picture, Image)
    Pillow.fromarray(picture.pixels).save(path)


def _titled(name: str, announce: Announce) -> Announce:
    def announced(title: str) -> Progress:
        return announce(f"{name}: {title}")

    return announced


def _recorded(folder: Path) -> dict[str, object] | None:
    """What the demo in a folder is of; none if there is none."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise SettingError(
            f"{folder / RECORD} is damaged ({error}); begin anew with --fresh"
        ) from error
    return found if isinstance(found, dict) else {}
