"""The built-in corpus: scenes as pictures, videos and sounds, with somebody's text for each.

A stand-in for offline use, which proves nothing about real media.
"""

from adaptiveembed.data.scenes.corpus import (
    QUERY,
    TRAIN,
    SceneItem,
    num_queries,
    scene_id,
    scene_items,
    scene_media,
    scene_text,
    write_scenes,
)
from adaptiveembed.data.scenes.latent import Scene, SceneKind, scene, scenes
from adaptiveembed.data.scenes.settings import ScenesSettings, Telling

__all__ = [
    "QUERY",
    "TRAIN",
    "Scene",
    "SceneItem",
    "SceneKind",
    "ScenesSettings",
    "Telling",
    "num_queries",
    "scene",
    "scene_id",
    "scene_items",
    "scene_media",
    "scene_text",
    "scenes",
    "write_scenes",
]
