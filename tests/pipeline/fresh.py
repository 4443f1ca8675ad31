"""What another process makes of a saved model: run with the folder, and where the answer goes."""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.retrieval.search import search
from tests.pipeline.tiny import facts, picture_of, text_of

COUNT, DEPTH = 12, 5


def answers(model):
    """Selections, scores, and the places that a search finds with its scores, both ways."""
    texts = [text_of(*one) for one in facts(COUNT)]
    pictures = [picture_of(*one) for one in facts(COUNT)]
    found = {}
    for name, asked, items in (("text", texts, pictures), ("image", pictures, texts)):
        queries, documents = model.encode_query(asked), model.encode_document(items)
        gallery = Gallery.from_candidates([str(place) for place in range(COUNT)], documents)
        rankings = list(search(gallery, queries, DEPTH))
        found[f"{name} selections"] = torch.tensor(
            [list(one.prefix_lengths) for one in queries.selections]
        )
        found[f"{name} scores"] = model.similarity(queries, documents)
        found[f"{name} ids"] = torch.tensor([[int(each.id) for each in one] for one in rankings])
        found[f"{name} hits"] = torch.tensor([[each.score for each in one] for one in rankings])
    return found


if __name__ == "__main__":
    folder, file = sys.argv[1:]
    save_file(answers(AdaptiveEmbed.from_pretrained(folder, check=True)), Path(file))
