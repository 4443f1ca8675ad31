"""Media are read as they look and sound, within their limits; what cannot be read is an error."""

import threading
import warnings

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from adaptiveembed.data.media import Text
from adaptiveembed.data.pictures import smaller_size
from adaptiveembed.data.reading import (
    ENDINGS,
    MediaLimits,
    content_key,
    modality_of,
    read_media,
)
from adaptiveembed.errors import MediaError, SettingError
from adaptiveembed.structure.direction import Modality
from tests.data.media_files import tone, write_sound, write_video

TEXT, IMAGE, VIDEO, AUDIO = Modality


def random_pixels(height, width, channels=3, seed=0):
    shape = (height, width, channels) if channels else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def outcome(path, modality):
    """What is read, or the error's text."""
    try:
        return read_media(path, modality)
    except MediaError as error:
        return str(error)


def picture(path, image, **options):
    image.save(path, **options)
    return read_media(path, IMAGE).pixels


# --- Pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tiff", ".ppm", ".webp"])
def test_a_picture_is_its_pixels(ending, tmp_path):
    pixels = random_pixels(5, 7)
    options = {"lossless": True} if ending == ".webp" else {}
    found = picture(tmp_path / f"a{ending}", Pillow.fromarray(pixels), **options)
    np.testing.assert_array_equal(found, pixels)
    assert found.dtype == np.uint8


@pytest.mark.parametrize("ending", [".jpg", ".avif", ".gif"])
def test_a_lossy_picture_is_nearly_its_pixels(ending, tmp_path):
    pixels = np.full((16, 24, 3), (200, 100, 50), np.uint8)
    found = picture(tmp_path / f"a{ending}", Pillow.fromarray(pixels))
    np.testing.assert_allclose(found.astype(int), pixels, atol=8)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_stands_upright(orientation, tmp_path):
    pixels = random_pixels(4, 6)
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    found = picture(tmp_path / "a.png", Pillow.fromarray(pixels), exif=exif)
    mirrored = pixels[:, ::-1] if orientation in {2, 4, 5, 7} else pixels
    quarters = {1: 0, 2: 0, 3: 2, 4: 2, 5: 1, 6: 3, 7: 3, 8: 1}[orientation]
    np.testing.assert_array_equal(found, np.rot90(mirrored, quarters))


def test_what_is_transparent_is_white(tmp_path):
    pixels = np.zeros((1, 3, 4), np.uint8)
    pixels[0, :, 3] = 0, 128, 255
    found = picture(tmp_path / "a.png", Pillow.fromarray(pixels))
    np.testing.assert_allclose(found[0, :, 0].astype(int), [255, 127, 0], atol=1)
    grey = Pillow.fromarray(pixels[..., [0, 3]].copy(), "LA")
    np.testing.assert_array_equal(picture(tmp_path / "b.png", grey), found)


def test_a_palette_is_its_colours_and_its_transparent_one_is_white(tmp_path):
    image = Pillow.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    found = picture(tmp_path / "a.png", image)
    assert found.tolist() == [[[10, 20, 30], [40, 50, 60]]]
    for name, transparency in (("b.png", 1), ("c.png", b"\xff\x00")):
        found = picture(tmp_path / name, image, transparency=transparency)
        assert found.tolist() == [[[10, 20, 30], [255, 255, 255]]]


def test_sixteen_bits_of_grey_keep_their_scale(tmp_path):
    deep = np.array([[0, 257 * 100, 65_535]], np.uint16)
    assert picture(tmp_path / "a.png", Pillow.fromarray(deep))[0, :, 0].tolist() == [0, 100, 255]


def test_black_and_white_and_print_colours_become_red_green_and_blue(tmp_path):
    black = Pillow.fromarray(np.array([[True, False]]))
    assert picture(tmp_path / "a.png", black)[0].tolist() == [[255] * 3, [0] * 3]
    ink = Pillow.new("CMYK", (8, 8), (0, 0, 0, 255))
    assert picture(tmp_path / "a.jpg", ink).max() < 10


def test_the_first_frame_of_an_animation_is_the_picture(tmp_path):
    frames = [Pillow.fromarray(np.full((4, 4, 3), level, np.uint8)) for level in (40, 200)]
    for ending in (".gif", ".png", ".webp"):
        path = tmp_path / f"a{ending}"
        found = picture(path, frames[0], save_all=True, append_images=frames[1:])
        np.testing.assert_allclose(found.astype(int), 40, atol=4)


@pytest.mark.parametrize("ending", [".png", ".jpg", ".gif"])
def test_a_large_picture_is_made_smaller_in_the_same_shape(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    Pillow.fromarray(np.full((300, 400, 3), 90, np.uint8)).save(path)
    found = read_media(path, IMAGE, MediaLimits(max_pixels=1_200)).pixels
    assert found.shape == (30, 40, 3)
    np.testing.assert_allclose(found.astype(int), 90, atol=3)


@given(width=st.integers(1, 10_000), height=st.integers(1, 10_000), most=st.integers(1, 10**6))
def test_a_smaller_size_has_at_most_so_many_pixels_and_the_same_shape(width, height, most):
    smaller = smaller_size(width, height, most)
    assert smaller[0] * smaller[1] <= most
    assert 1 <= smaller[0] <= width
    assert 1 <= smaller[1] <= height
    if width * height <= most:
        assert smaller == (width, height)
    elif min(smaller) > 1:
        assert abs(smaller[0] * height - smaller[1] * width) <= max(width, height)


def test_fractions_without_a_scale_are_refused(tmp_path):
    Pillow.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "a.tiff")
    with pytest.raises(MediaError, match=r"a\.tiff cannot be read as image .*fractions"):
        read_media(tmp_path / "a.tiff", IMAGE)


def test_a_picture_that_unfolds_to_too_many_pixels_is_refused(tmp_path, monkeypatch):
    Pillow.new("1", (2_000, 1_000)).save(tmp_path / "a.png")
    limits = MediaLimits(max_source_pixels=1_000_000)
    expected = r"a\.png has 2000 × 1000 pixels and at most 1,000,000 .*raise max_source_pixels"
    with pytest.raises(MediaError, match=expected):
        read_media(tmp_path / "a.png", IMAGE, limits)
    monkeypatch.setattr(Pillow, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(MediaError, match=r"a\.png has more pixels than are safe to read"):
        read_media(tmp_path / "a.png", IMAGE)


def test_pillow_warns_nobody_whatever_the_threads(tmp_path, monkeypatch):
    Pillow.new("RGB", (15, 10)).save(tmp_path / "a.png")
    monkeypatch.setattr(Pillow, "MAX_IMAGE_PIXELS", 100)  # from here on, Pillow warns
    filters = list(warnings.filters)
    failed = []

    def read():
        try:
            for _ in range(20):
                read_media(tmp_path / "a.png", IMAGE)
        except Warning as warning:
            failed.append(warning)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert warnings.filters == filters


# --- Videos ---------------------------------------------------------------------------------------


def levels_of(video):
    """The grey of each frame."""
    return video.frames[:, -8:, -8:].mean(axis=(1, 2, 3)).round().astype(int).tolist()


def test_frames_are_taken_at_equal_times(tmp_path):
    write_video(tmp_path / "a.mp4", [6 * place for place in range(40)], rate=10)
    found = read_media(tmp_path / "a.mp4", VIDEO, MediaLimits(frames_per_second=2.0))
    assert found.frames.shape == (8, 48, 64, 3)
    assert found.frames.dtype == np.uint8
    np.testing.assert_allclose(levels_of(found), [30 * place for place in range(8)], atol=4)
    assert found.frames_per_second == pytest.approx(2)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_of_a_long_video_frames_are_spread_from_its_start_to_its_end(most, tmp_path):
    write_video(tmp_path / "a.mp4", [2 * place for place in range(100)], rate=10)
    limits = MediaLimits(frames_per_second=10.0, max_frames=most)
    found = read_media(tmp_path / "a.mp4", VIDEO, limits)
    levels = np.array(levels_of(found))
    assert len(levels) == most
    assert levels[0] <= 4
    if most > 1:
        assert levels[-1] >= 150
        gaps = np.diff(levels)
        assert gaps.max() <= 1.5 * gaps.min() + 4
        assert found.frames_per_second == pytest.approx(
            20 * (most - 1) / (levels[-1] - levels[0]), rel=0.1
        )


def test_fewer_frames_than_asked_are_all_taken_once(tmp_path):
    write_video(tmp_path / "a.mp4", [0, 80, 160], rate=1)
    found = read_media(tmp_path / "a.mp4", VIDEO, MediaLimits(frames_per_second=5.0))
    np.testing.assert_allclose(levels_of(found), [0, 80, 160], atol=4)
    assert found.frames_per_second == pytest.approx(1)


def test_a_video_of_one_frame_is_a_video(tmp_path):
    write_video(tmp_path / "a.mp4", [50])
    found = read_media(tmp_path / "a.mp4", VIDEO, MediaLimits(frames_per_second=3.0))
    assert (len(found.frames), found.frames_per_second) == (1, 3)


def test_what_comes_after_the_last_second_is_not_read(tmp_path):
    write_video(tmp_path / "a.mp4", [2 * place for place in range(100)], rate=10)
    found = read_media(
        tmp_path / "a.mp4", VIDEO, MediaLimits(max_seconds=3.0, frames_per_second=1.0)
    )
    np.testing.assert_allclose(levels_of(found), [0, 20, 40, 60], atol=4)


@pytest.mark.parametrize("rotation", [90, -90, 180])
def test_a_video_stands_upright(rotation, tmp_path):
    write_video(tmp_path / "a.mp4", [20, 20], rotation=rotation)
    (frame,) = read_media(tmp_path / "a.mp4", VIDEO).frames
    bright = np.argwhere(frame.min(axis=2) > 200).mean(axis=0) / frame.shape[:2]
    # the mark of the upper left corner, turned counterclockwise
    corner = {90: (True, False), -90: (False, True), 180: (True, True)}[rotation]
    assert tuple(bright > 0.5) == corner
    assert frame.shape == ((64, 48, 3) if abs(rotation) == 90 else (48, 64, 3))


def test_frames_are_made_smaller(tmp_path):
    write_video(tmp_path / "a.mkv", [50, 50], size=(160, 120))
    found = read_media(tmp_path / "a.mkv", VIDEO, MediaLimits(max_frame_pixels=1_200))
    assert found.frames.shape == (1, 30, 40, 3)
    with pytest.raises(MediaError, match="frames of 160 × 120 pixels and at most 19,000 are read"):
        read_media(tmp_path / "a.mkv", VIDEO, MediaLimits(max_source_pixels=19_000))


def test_an_animation_can_be_read_as_a_video(tmp_path):
    frames = [Pillow.fromarray(np.full((8, 8, 3), level, np.uint8)) for level in (40, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:], duration=1_000)
    np.testing.assert_allclose(levels_of(read_media(tmp_path / "a.gif", VIDEO)), [40, 200], atol=4)


# --- Sounds ---------------------------------------------------------------------------------------


def sound(path, samples, rate, **limits):
    soundfile.write(path, samples, rate)
    return read_media(path, AUDIO, MediaLimits(**limits))


def test_a_sound_of_the_wanted_rate_is_its_samples(tmp_path):
    samples = tone(0.2, 16_000)
    found = sound(tmp_path / "a.flac", samples, 16_000)
    np.testing.assert_allclose(found.samples, samples, atol=1e-4)
    assert (found.samples.dtype, found.rate) == (np.float32, 16_000)


@pytest.mark.parametrize("ending", [".wav", ".flac", ".ogg", ".mp3"])
@pytest.mark.parametrize("rate", [8_000, 44_100])
def test_another_rate_is_resampled(ending, rate, tmp_path):
    found = sound(tmp_path / f"a{ending}", tone(1, rate), rate)
    assert abs(len(found.samples) - 16_000) < 1_500  # mp3 adds silence
    spectrum = np.abs(np.fft.rfft(found.samples[:12_000] * np.hanning(12_000)))
    assert spectrum.argmax() * 16_000 / 12_000 == pytest.approx(440, abs=3)
    assert np.abs(found.samples[3_000:9_000]).max() == pytest.approx(0.5, abs=0.06)


def test_resampling_is_the_sine_itself(tmp_path):
    found = sound(tmp_path / "a.wav", tone(0.5, 44_100), 44_100)
    assert len(found.samples) == 8_000
    np.testing.assert_allclose(found.samples[100:-100], tone(0.5, 16_000)[100:-100], atol=1e-3)


def test_channels_are_averaged(tmp_path):
    left = tone(0.1, 16_000)
    found = sound(tmp_path / "a.wav", np.stack([left, 0 * left], axis=1), 16_000)
    np.testing.assert_allclose(found.samples, left / 2, atol=1e-4)


def test_what_comes_after_the_last_second_of_a_sound_is_not_read(tmp_path):
    for rate in (16_000, 44_100):
        found = sound(tmp_path / "a.wav", tone(3, rate), rate, max_seconds=0.5)
        assert len(found.samples) == 8_000
    write_sound(tmp_path / "a.m4a", tone(3, 44_100))
    found = read_media(tmp_path / "a.m4a", AUDIO, MediaLimits(max_seconds=0.5))
    assert len(found.samples) == 8_000


def test_what_libsndfile_does_not_know_is_read_by_ffmpeg(tmp_path):
    write_sound(tmp_path / "a.m4a", tone(1, 44_100))
    found = read_media(tmp_path / "a.m4a", AUDIO)
    assert abs(len(found.samples) - 16_000) < 1_500
    assert np.abs(found.samples[4_000:12_000]).max() == pytest.approx(0.5, abs=0.05)


def test_samples_stay_between_minus_one_and_one(tmp_path):
    soundfile.write(tmp_path / "a.wav", 3 * tone(0.1, 16_000), 16_000, subtype="FLOAT")
    found = read_media(tmp_path / "a.wav", AUDIO)
    assert (found.samples.min(), found.samples.max()) == (-1, 1)


def test_a_sound_of_no_samples_or_of_nan_is_refused(tmp_path):
    with pytest.raises(MediaError, match=r"a\.wav holds no sound"):
        sound(tmp_path / "a.wav", np.empty(0), 16_000)
    soundfile.write(tmp_path / "b.wav", np.full(100, np.nan), 16_000, subtype="FLOAT")
    with pytest.raises(MediaError, match=r"b\.wav holds NaN"):
        read_media(tmp_path / "b.wav", AUDIO)


def test_what_has_no_pictures_or_no_sound_says_so(tmp_path):
    write_video(tmp_path / "a.mp4", [50, 50])
    with pytest.raises(MediaError, match=r"a\.mp4 has no sound"):
        read_media(tmp_path / "a.mp4", AUDIO)
    write_sound(tmp_path / "a.m4a", tone(0.2, 44_100))
    with pytest.raises(MediaError, match=r"a\.m4a has no moving pictures"):
        read_media(tmp_path / "a.m4a", VIDEO)


# --- Texts ----------------------------------------------------------------------------------------


def test_a_text_is_read_without_its_mark(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfna\xc3\xafve")
    assert read_media(tmp_path / "a.txt", TEXT) == Text("naïve")


@pytest.mark.parametrize(
    ("content", "message"), [(b"a\xff", "not UTF-8 at byte 2"), (b" \n", "no text")]
)
def test_a_text_that_is_none_is_refused(content, message, tmp_path):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(MediaError, match=rf"a\.txt .*{message}"):
        read_media(tmp_path / "a.txt", TEXT)


# --- What cannot be read --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A good file of each modality but text."""
    folder = tmp_path_factory.mktemp("media")
    Pillow.fromarray(random_pixels(40, 50)).save(folder / "a.jpg")
    Pillow.fromarray(random_pixels(40, 50)).save(folder / "a.png")
    write_video(folder / "a.mp4", range(0, 200, 10))
    soundfile.write(folder / "a.flac", tone(0.3, 16_000), 16_000)
    return folder


NAMES = ["a.jpg", "a.png", "a.mp4", "a.flac"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("modality", [IMAGE, VIDEO, AUDIO])
def test_a_broken_file_is_an_error_that_names_it_or_a_medium_never_a_traceback(
    name, modality, files, tmp_path, capfd
):
    content = (files / name).read_bytes()
    damaged = {
        "garbage": np.random.default_rng(0).bytes(2_000),
        "half": content[: len(content) // 2],
        "head": content[:20],
        "text": b"<html>404 not found</html>",
    }
    for damage, broken in damaged.items():
        (tmp_path / name).write_bytes(broken)
        found = outcome(tmp_path / name, modality)
        if isinstance(found, str):
            assert str(tmp_path / name) in found
            assert ";" in found
            assert "Errno" not in found
        else:
            assert damage == "half"
            assert found.modality == modality
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_byte_is_an_error_or_a_medium_never_a_traceback(name, files, tmp_path):
    content = (files / name).read_bytes()
    generator = np.random.default_rng(1)
    for place in generator.integers(0, len(content), 25):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        (tmp_path / name).write_bytes(changed)
        found = outcome(tmp_path / name, modality_of(name))
        assert not isinstance(found, str) or str(tmp_path / name) in found


@pytest.mark.parametrize("modality", Modality)
def test_a_file_that_is_not_there_empty_or_too_large_is_named(modality, tmp_path):
    with pytest.raises(MediaError, match=r"none\.x cannot be read \(No such file .*correct the"):
        read_media(tmp_path / "none.x", modality)
    with pytest.raises(MediaError, match="is not a file"):
        read_media(tmp_path, modality)
    with pytest.raises(MediaError, match="null byte"):
        read_media("a\0b", modality)
    (tmp_path / "a.x").touch()
    with pytest.raises(MediaError, match=r"a\.x is empty; replace it"):
        read_media(tmp_path / "a.x", modality)
    (tmp_path / "a.x").write_bytes(bytes(2_000))
    with pytest.raises(MediaError, match=r"2,000 bytes and at most 1,999 .*raise max_bytes"):
        read_media(tmp_path / "a.x", modality, MediaLimits(max_bytes=1_999))


def test_a_name_with_anything_in_it_is_a_file_of_this_machine(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a:b.mp4", "concat:a.mp4", "%d ?#.mp4", "-i.mp4"):
        (tmp_path / name).write_bytes((files / "a.mp4").read_bytes())
        assert len(read_media(name, VIDEO).frames) == 2


# --- Modalities, keys, limits ---------------------------------------------------------------------


def test_the_name_of_a_file_tells_its_modality():
    for modality, endings in ENDINGS.items():
        for ending in endings:
            assert modality_of(f"folder.png/A{ending.upper()}") == modality
    with pytest.raises(MediaError, match=r"a\.xyz ends in \.xyz, which tells no modality"):
        modality_of("a.xyz")
    with pytest.raises(MediaError, match="ends in nothing"):
        modality_of("a")


def test_equal_content_has_equal_keys(tmp_path):
    for name, content in {"a": b"one", "b": b"one", "c": b"two"}.items():
        (tmp_path / name).write_bytes(content)
    keys = [content_key(tmp_path / name) for name in "abc"]
    assert keys[0] == keys[1] != keys[2]
    assert content_key("one") == keys[0]
    assert content_key("\ud800") != content_key("one")
    assert len(keys[0]) == 32
    bounded = [
        content_key(tmp_path / "a", MediaLimits(rate=rate)) for rate in (8_000, 8_000, 9_000)
    ]
    assert keys[0] != bounded[0] == bounded[1] != bounded[2]
    with pytest.raises(MediaError, match=r"none cannot be read \(No such file"):
        content_key(tmp_path / "none")


@pytest.mark.parametrize("name", ["max_bytes", "max_pixels", "max_seconds", "rate", "max_frames"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_that_lets_nothing_through_is_refused(name, value):
    kind = type(getattr(MediaLimits(), name))
    with pytest.raises(SettingError, match=f"{name} is {value}"):
        MediaLimits(**{name: kind(value)})
