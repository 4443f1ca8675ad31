"""Files of pictures, videos and sounds, made for a test."""

import av
import numpy as np


def write_video(path, levels, rate=10, size=(64, 48), rotation=0):
    """A video of one grey frame after another, a mark in the upper left corner of each."""
    width, height = size
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=rate, options={"crf": "1", "g": "12"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        if rotation:
            stream.set_display_rotation(rotation)
        for level in levels:
            pixels = np.full((height, width, 3), level, np.uint8)
            pixels[: height // 4, : width // 4] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def write_sound(path, samples, rate=44_100):
    """A sound in a container that libsndfile does not read."""
    with av.open(path, "w") as container:
        stream = container.add_stream("aac", rate=rate, layout="mono")
        for start in range(0, len(samples), 1024):
            part = samples[None, start : start + 1024].astype(np.float32)
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="mono")
            frame.sample_rate, frame.pts = rate, start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def tone(seconds, rate, hertz=440):
    """A sine at half volume."""
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)
