"""The command ``data``: the built-in corpus, benchmarks, manifests, features in and out."""

from __future__ import annotations

import argparse

from adaptiveembed.cli.arguments import (
    LARGEST_SEED,
    add_command,
    folder,
    named_path,
    path,
    whole_number,
)
from adaptiveembed.cli.building import add_build, build

NAME = "data"
MEDIA = ("image", "video", "audio")

ABOUT = """\
Makes, builds, checks, imports and exports data.

  scenes   write the built-in corpus: made-up scenes as texts with pictures,
           videos or sounds. A stand-in that proves nothing about real media.
  build    a manifest of one of the paper's eight benchmarks, from annotation
           files and media as their publishers offer them
  check    read a manifest and look whether its media are there
  import   a dataset folder from features of your own (.npz or safetensors with
           ids, global_feature and, if wanted, hidden_states and mask)
  export   the features of one side of a dataset as such a file
"""

EXAMPLES = """\
  adaptiveembed data scenes corpus --items 1200 --medium image
  adaptiveembed data build coco --help
  adaptiveembed data check pairs.csv
  adaptiveembed data import features text=texts.npz image=images.npz
  adaptiveembed data export features image images.npz
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments of the command."""
    parser = add_command(
        commands,
        NAME,
        summary="make the built-in corpus; build, check, import and export data",
        about=ABOUT,
        examples=EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    scenes = actions.add_parser("scenes", help="write the built-in corpus")
    scenes.add_argument("folder", type=folder, metavar="FOLDER")
    scenes.add_argument("--items", type=whole_number(1, 1_000_000), default=1200, metavar="NUMBER")
    scenes.add_argument("--medium", choices=MEDIA, default="image")
    scenes.add_argument("--seed", type=whole_number(0, LARGEST_SEED), default=0, metavar="NUMBER")
    add_build(actions)
    check = actions.add_parser("check", help="look for everything wrong in a manifest")
    check.add_argument("manifest", type=path, metavar="MANIFEST")
    imported = actions.add_parser("import", help="a dataset folder from features of your own")
    imported.add_argument("folder", type=path, metavar="FOLDER")
    imported.add_argument("files", type=named_path, nargs=2, metavar="MODALITY=FILE")
    imported.add_argument(
        "--pairs",
        type=path,
        metavar="MANIFEST",
        help="ids, splits and texts; without it pairs are the ids that both files have",
    )
    exported = actions.add_parser("export", help="the features of one side as .npz or safetensors")
    exported.add_argument("folder", type=path, metavar="FOLDER")
    exported.add_argument("modality", metavar="MODALITY")
    exported.add_argument("file", type=path, metavar="FILE")


def run(arguments: argparse.Namespace) -> None:
    """Do what the action says."""
    actions = {
        "scenes": _scenes,
        "build": build,
        "check": _check,
        "import": _import,
        "export": _export,
    }
    actions[arguments.action](arguments)


def _scenes(arguments: argparse.Namespace) -> None:
    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.data.scenes.corpus import write_scenes
    from adaptiveembed.structure.direction import Modality

    with ShownProgress() as announce:
        manifest = write_scenes(
            arguments.folder,
            arguments.items,
            Modality(arguments.medium),
            arguments.seed,
            progress=announce("drawing scenes"),
        )
    print(f"The manifest is {manifest}. Next: adaptiveembed encode {manifest} --output features")


def _check(arguments: argparse.Namespace) -> None:
    from adaptiveembed.cli.counts import split_counts
    from adaptiveembed.data.pairs import missing_media, read_manifest
    from adaptiveembed.errors import ManifestError
    from adaptiveembed.pipeline.dataset import require_different_texts

    manifest = read_manifest(arguments.manifest)
    missing = missing_media(manifest)
    if missing:
        shown = "\n".join(f"  {pair.id}: {pair.media}" for pair in missing[:20])
        more = f"\n  and {len(missing) - 20} more" if len(missing) > 20 else ""
        raise ManifestError(
            f"{len(missing)} media are not where they were looked for; correct their paths, which "
            f"are relative to the manifest:\n{shown}{more}"
        )
    require_different_texts(manifest)
    splits = split_counts(manifest)
    print(f"{arguments.manifest}: {len(manifest):,} pairs ({splits}), all in order")


def _import(arguments: argparse.Namespace) -> None:
    from adaptiveembed.cli.counts import pair_counts
    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.data.pairs import read_manifest
    from adaptiveembed.pipeline.dataset import import_dataset
    from adaptiveembed.pipeline.inputs import known_modality

    manifest = None
    if arguments.pairs is not None:
        manifest = read_manifest(arguments.pairs, needed=None)
    files = {known_modality(name): file for name, file in arguments.files}
    with ShownProgress() as announce:
        dataset = import_dataset(files, arguments.folder, manifest, announce)
    folder = arguments.folder
    print(f"The dataset is in {folder}: {pair_counts(dataset.pairs)}.")
    if dataset.left_out:
        print(
            f"{len(dataset.left_out):,} listed pairs are left out, without features of both sides"
        )
    print(f"Next: adaptiveembed train {folder} --output RUN")


def _export(arguments: argparse.Namespace) -> None:
    from adaptiveembed.cli.progress import ShownProgress
    from adaptiveembed.data.feature_exchange import export_features
    from adaptiveembed.pipeline.inputs import known_modality
    from adaptiveembed.pipeline.sides import SideStores

    modality = known_modality(arguments.modality)
    store = SideStores.open(arguments.folder / modality)
    with ShownProgress() as announce:
        export_features(store, arguments.file, announce(f"exporting {modality}"))
    print(f"{len(store.ids):,} items are in {arguments.file}")
