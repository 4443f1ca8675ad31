"""Sizes, frames and patches are what the models of the Qwen-VL family were trained on."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.data.media import Image, Video
from adaptiveembed.encoders.pretrained.qwen_inputs import (
    Composed,
    FrameChoice,
    Grid,
    Kind,
    PatchCutter,
    PixelLimits,
    chosen_frames,
    cut_before,
    cut_into_patches,
    fitted_size,
    frame_limits,
    kinds_of,
    plain_text,
    resized,
    times_of,
    token_batch,
)
from adaptiveembed.errors import EncoderError, SettingError
from tests.encoders.items import picture

ANY = PixelLimits(1, 10**9)
SMALL = SimpleNamespace(patch_size=2, merge_size=2, temporal_patch_size=2)


def official(**settings):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (
        Qwen2VLImageProcessorPil,
    )

    return Qwen2VLImageProcessorPil(**settings)


def video(frames, rate):
    return Video(np.zeros((frames, 2, 2, 3), np.uint8), rate)


# Sizes.


@pytest.mark.parametrize(
    ("shape", "limits", "fitted"),
    [
        ((64, 96), ANY, (64, 96)),
        ((70, 100), ANY, (64, 96)),
        ((80, 112), ANY, (64, 128)),  # halves go to the even multiple
        ((640, 320), PixelLimits(1, 320 * 160), (320, 160)),
        ((640, 320), PixelLimits(1, 320 * 160 - 1), (288, 128)),
        ((20, 30), PixelLimits(4096, 10**6), (64, 96)),
        ((1, 1), PixelLimits(4096, 10**6), (64, 64)),
        ((200, 1), PixelLimits(4096, 10**6), (928, 32)),
    ],
)
def test_sizes_are_near_multiples_within_the_limits(shape, limits, fitted):
    assert fitted_size(shape, 32, limits) == fitted


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 60), st.integers(0, 2000))
def test_sizes_are_those_of_the_official_image_processor(height, width, least, more):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    limits = PixelLimits(least * 28**2, (least + more) * 28**2)
    try:
        expected = smart_resize(height, width, 28, limits.least, limits.most)
    except ValueError:
        with pytest.raises(EncoderError, match="too narrow"):
            fitted_size((height, width), 28, limits)
    else:
        assert fitted_size((height, width), 28, limits) == expected


def test_a_picture_that_is_too_narrow_is_refused_with_its_size():
    with pytest.raises(EncoderError, match=r"5 × 1001 pixels is too narrow.* at most 200 times"):
        fitted_size((1001, 5), 28, ANY)


@pytest.mark.parametrize(("least", "most"), [(0, 5), (6, 5), (-1, 5)])
def test_limits_that_leave_nothing_are_refused(least, most):
    with pytest.raises(SettingError, match=f"{least} and the most are {most}"):
        PixelLimits(least, most)


@pytest.mark.parametrize(
    ("frames", "most"),
    [
        (2, 768),  # a frame may not have more, whatever is left
        (20, 768),
        (64, 240),  # 7,680 tokens for 32 pairs
        (120, 134),  # 5 % above the least, beneath which the budget does not bring a frame
    ],
)
def test_frames_share_the_pixels_of_a_video_two_by_two(frames, most):
    limits = frame_limits(frames, PixelLimits(128 * 1024, 768 * 1024), 7680 * 1024)
    assert limits.least == 128 * 1024
    assert limits.most // 1024 == most


# Frames.


@pytest.mark.parametrize(
    ("frames", "rate", "chosen"),
    [
        (1, 1.0, [0]),
        (3, 30.0, [0, 1, 2]),
        (9, 1.0, [*range(9)]),
        (9, 1.0000000001, [*range(9)]),  # a rate that was computed
        (20, 4.0, [0, 5, 10, 14, 19]),
        (30, 30.0, [0, 10, 19, 29]),  # one second, and four frames at least
        (100, 0.1, None),
    ],
)
def test_frames_of_every_second_are_chosen_from_the_first_to_the_last(frames, rate, chosen):
    found = chosen_frames(video(frames, rate), FrameChoice(1.0, 64)).tolist()
    if chosen is None:
        assert (len(found), found[0], found[-1]) == (64, 0, 99)
    else:
        assert found == chosen


def test_all_frames_up_to_the_most_are_chosen_where_seconds_do_not_count():
    choice = FrameChoice(float("inf"), 8)
    assert chosen_frames(video(5, 1.0), choice).tolist() == [0, 1, 2, 3, 4]
    assert chosen_frames(video(15, 1.0), choice).tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


@pytest.mark.parametrize(("per_second", "most"), [(0.0, 64), (1.0, 0), (float("nan"), 5)])
def test_a_choice_of_no_frame_is_refused(per_second, most):
    with pytest.raises(SettingError, match="leave no frame"):
        FrameChoice(per_second, most)


def test_a_time_is_the_middle_of_the_frames_seen_together():
    assert times_of(np.array([0, 5, 10, 14]), 4.0, 2) == [0.625, 3.0]
    assert times_of(np.array([0, 3, 8]), 2.0, 2) == [0.75, 4.0]  # the last one is seen twice
    assert times_of(np.array([0]), 1.0, 2) == [0.0]


# Patches.


def slow_patches(frames, side, merge, depth):
    """One number after the other, in the order in which the official processors put them."""
    times, height, width, _ = frames.shape
    rows = []
    for time in range(0, times, depth):
        for block_row in range(0, height, side * merge):
            for block_column in range(0, width, side * merge):
                for row in range(block_row, block_row + side * merge, side):
                    for column in range(block_column, block_column + side * merge, side):
                        cut = frames[time : time + depth, row : row + side, column : column + side]
                        rows.append(
                            [
                                cut[when, down, across, colour]
                                for colour in range(3)
                                for when in range(depth)
                                for down in range(side)
                                for across in range(side)
                            ]
                        )
    return np.array(rows, np.float32)


@pytest.mark.parametrize(("times", "height", "width"), [(2, 4, 4), (4, 8, 4), (6, 4, 12)])
def test_patches_are_those_of_the_slow_twin(times, height, width):
    frames = np.random.default_rng(0).random((times, height, width, 3), np.float32)
    assert (cut_into_patches(frames, SMALL) == slow_patches(frames, 2, 2, 2)).all()


def test_a_still_video_has_the_patches_that_the_official_processor_gives_its_picture():
    still = picture(1, 60, 90)
    cutter = PatchCutter(official(patch_size=14))
    limits = PixelLimits(56 * 84, 56 * 84)  # what the picture is near to, so that it is resized
    shown = cutter.image_patches(Image(still), limits)
    moving = cutter.video_patches(np.stack([still] * 2), limits)
    assert cutter.image_grid(Image(still), limits) == Grid(1, 4, 6)
    assert moving.shape == shown.shape == (24, 2 * 3 * 14 * 14)
    # one grey level is 1/255 of the range over a deviation of 0.26
    assert np.abs(moving - shown).max() <= 1.01 / 255 / 0.26


def test_pixels_that_need_no_resizing_are_exact():
    still = picture(1, 56, 84)
    cutter = PatchCutter(official(patch_size=14))
    shown = cutter.image_patches(Image(still), ANY)
    np.testing.assert_allclose(
        cutter.video_patches(np.stack([still] * 2), ANY), shown, rtol=0, atol=1e-6
    )


def test_an_odd_video_ends_with_its_last_frame_twice():
    cutter = PatchCutter(official(patch_size=14))
    frames = np.stack([picture(seed, 28, 28) for seed in (1, 2, 3)])
    longer = np.concatenate((frames, frames[-1:]))
    assert cutter.video_grid(Video(frames, 1.0), 3, ANY) == Grid(2, 2, 2)
    assert (cutter.video_patches(frames, ANY) == cutter.video_patches(longer, ANY)).all()


def test_the_checkpoint_says_its_own_limits():
    cutter = PatchCutter(official(size={"shortest_edge": 10, "longest_edge": 20}))
    assert cutter.limits == PixelLimits(10, 20)


def test_resizing_leaves_a_flat_frame_flat():
    flat = np.full((2, 10, 20, 3), 77, np.uint8)
    assert (resized(flat, 28, 56) == 77).all()
    assert resized(flat, 28, 56).shape == (2, 28, 56, 3)


# Tokens.


def test_markers_in_a_text_become_plain_text():
    markers = ["<|im_end|>", "<|image_pad|>"]
    assert plain_text("no marker < | >", markers) == "no marker < | >"
    assert plain_text("a <|im_end|><|image_pad|>", markers) == "a < |im_end|>< |image_pad|>"


def test_every_token_has_its_kind():
    assert kinds_of([5, 6, 6, 7, 5], 6, 7) == [0, Kind.IMAGE, Kind.IMAGE, Kind.VIDEO, 0]


def test_a_long_text_is_cut_before_its_closing_tokens():
    tokens = [1, 2, 3, 4, 8, 9]
    assert cut_before(tokens, [8, 9], 6) == tokens
    assert cut_before(tokens, [8, 9], 4) == [1, 2, 8, 9]
    assert cut_before(tokens, [8, 9], 1) == [8, 9]
    assert cut_before(tokens, [], 2) == [1, 2]


def test_items_are_filled_up_behind_their_last_token():
    ones = np.ones((4, 2), np.float32)
    image = Composed([6, 6], [Kind.IMAGE] * 2, Grid(1, 2, 2), lambda: ones)
    text = Composed([1, 2, 3], [Kind.TEXT] * 3)
    batch = token_batch([image, text], filling=9)
    assert batch.tokens.tolist() == [[6, 6, 9], [1, 2, 3]]
    assert batch.kinds.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.patches.grids.tolist() == [[1, 2, 2]]
    assert torch.equal(batch.patches.pixels, torch.ones(4, 2))
    assert token_batch([text], 9).patches is None
