"""A scene as a video: its things move, and its rain falls."""

from math import pi, sin

import numpy as np

from adaptiveembed.data.media import Video
from adaptiveembed.data.scenes.backdrop import fall
from adaptiveembed.data.scenes.draws import Draws, Stream
from adaptiveembed.data.scenes.image import Pose, draw_thing, exposed, pose, stage
from adaptiveembed.data.scenes.latent import Action, Scene
from adaptiveembed.data.scenes.settings import ScenesSettings
from adaptiveembed.data.scenes.silhouettes import TURNS

REACH = 0.28
"""How far a thing wanders during the video, as a share of the picture."""
BOUNCES = 2
BLINKS = 2


def video(scene: Scene, settings: ScenesSettings) -> Video:
    """The scene as a video."""
    draws = Draws(scene.seed, Stream.VIDEO, scene.number)
    ground = stage(scene, settings.frame_size, settings, draws)
    poses = [pose(thing, settings, draws) for thing in scene.things]
    start, light = draws.below(1000), 1 + draws.within(settings.light_jitter)
    frames = []
    for frame in range(settings.frames):
        time = frame / max(settings.frames - 1, 1)
        canvas = ground.copy()
        for thing, at_first in reversed(list(zip(scene.things, poses, strict=True))):
            draw_thing(canvas, thing, moved(at_first, thing.action, time, frame), scene)
        fall(canvas, scene.setting.weather, start, frame)
        frames.append(canvas)
    shot = exposed(np.concatenate(frames), light, settings.pixel_noise, draws)
    return Video(shot.reshape(settings.frames, *ground.shape), settings.frames_per_second)


def moved(pose: Pose, action: Action, time: float, frame: int) -> Pose:
    """Where an action has brought a thing at a time from 0, the first frame, to 1, the last."""
    if action in {Action.LEFT, Action.RIGHT}:
        way = REACH * (time - 0.5)
        return pose._replace(x=pose.x + (way if action is Action.RIGHT else -way))
    if action in {Action.GROW, Action.SHRINK}:
        passed = time if action is Action.GROW else 1 - time
        return pose._replace(width=pose.width * (0.6 + 0.9 * passed))
    if action is Action.BOUNCE:
        return pose._replace(y=pose.y - 0.6 * REACH * abs(sin(pi * BOUNCES * time)))
    if action is Action.SPIN:
        return pose._replace(turn=frame % TURNS)
    if action is Action.BLINK:
        return pose._replace(shown=int(2 * BLINKS * time) % 2 == 0)
    return pose
