"""Models on the hub: a repository holds what ``save_pretrained`` writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.errors import HTTPError as HubError  # type: ignore[attr-defined]

from adaptiveembed.errors import ModelFormatError

if TYPE_CHECKING:
    from adaptiveembed.pipeline.model import AdaptiveEmbed


def upload(model: AdaptiveEmbed, name: str, *, private: bool, token: str | None) -> str:
    """Upload a model as ``owner/name``; the address of the commit."""
    api = HfApi(token=token)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        model.save_pretrained(folder)
        try:
            api.create_repo(name, private=private, exist_ok=True)
            found = api.upload_folder(repo_id=name, folder_path=folder)
        except (HubError, HFValidationError, OSError) as error:
            raise ModelFormatError(
                f"{name} could not be uploaded ({error}); check the name, the network and the token"
            ) from error
    return str(found.commit_url)
