"""The built-in encoder measures what it says, wherever it runs, and says what is where."""

import numpy as np
import pytest
import torch

from adaptiveembed.data.media import Audio, Image, Text, Video
from adaptiveembed.encoders.training_free import (
    audio,
    cells,
    chance,
    places,
    projecting,
    text,
    video,
)
from adaptiveembed.encoders.training_free.encoder import TrainingFreeEncoder
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality
from tests.encoders.items import BATCHES, moving_block, picture, tone


def encode(*items, width=128):
    return TrainingFreeEncoder(items[0].modality, width).encode(items)


def cosines(encoded):
    return encoded.global_feature @ encoded.global_feature.T


def real_states(encoded, item=0):
    return encoded.hidden_states[item][encoded.mask[item]]


# What holds for every modality.


@pytest.mark.parametrize("modality", Modality)
def test_global_features_have_length_one_and_states_mean_square_one(modality):
    encoded = TrainingFreeEncoder(modality, 64).encode(BATCHES[modality])
    lengths = encoded.global_feature.norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))
    squares = encoded.hidden_states[encoded.mask].square().mean(dim=1)
    torch.testing.assert_close(squares, torch.ones_like(squares))


@pytest.mark.parametrize(
    ("modality", "most"),
    [(Modality.TEXT, 48), (Modality.IMAGE, 37), (Modality.VIDEO, 65), (Modality.AUDIO, 32)],
)
def test_no_item_has_more_states_than_the_decision_page_says(modality, most):
    assert TrainingFreeEncoder(modality, 64).encode(BATCHES[modality]).mask.sum(dim=1).max() == most


GOLDEN = {
    (Modality.TEXT, 0): [0.16467, -0.21238, -0.14952, 1.34778, -1.79591, -1.14135],
    (Modality.TEXT, 1): [0.02482, 0.04656, -0.18822, -1.05084, 0.10858, -1.28904],
    (Modality.IMAGE, 0): [-0.04781, 0.01838, -0.07472, 0.42931, -0.09985, -0.91197],
    (Modality.IMAGE, 1): [-0.02381, 0.10126, 0.00384, -0.35422, -0.42963, 1.15583],
    (Modality.VIDEO, 0): [-0.05022, -0.27705, 0.20199, 0.51506, 2.3734, -0.95078],
    (Modality.VIDEO, 1): [-0.22555, 0.10435, -0.00135, -0.25853, 0.12594, -2.52586],
    (Modality.AUDIO, 0): [-0.00905, -0.10178, -0.00233, -1.87549, 0.05403, 0.94225],
    (Modality.AUDIO, 1): [-0.02679, 0.13988, -0.14584, -0.99734, 0.83238, -0.21359],
}
"""The first numbers of a global feature and of a hidden state of the second item."""


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("modality", Modality)
def test_features_do_not_change_unless_the_version_does(modality, seed):
    encoded = TrainingFreeEncoder(modality, 64, seed).encode(BATCHES[modality][:2])
    found = [*encoded.global_feature[1, :3].tolist(), *encoded.hidden_states[1, 1, :3].tolist()]
    assert found == pytest.approx(GOLDEN[modality, seed], abs=2e-4), "raise VERSION with any change"


@pytest.mark.parametrize("width", [8, 9, 100])
@pytest.mark.parametrize("modality", Modality)
def test_every_width_works(modality, width):
    assert TrainingFreeEncoder(modality, width).encode(BATCHES[modality][:1]).width == width


def test_a_width_that_says_nothing_is_refused():
    with pytest.raises(SettingError, match="width is 7; give at least 8"):
        TrainingFreeEncoder(Modality.TEXT, width=7)


# Chance.


def test_projections_are_signs_that_keep_lengths_and_every_key_has_its_own():
    one, other = chance.projection("one", 50, 400), chance.projection("other", 50, 400)
    assert one.abs().unique().tolist() == [pytest.approx(1 / 20)]
    assert abs(float((one * other).sum()) * 400 / one.numel()) < 0.05 * 400
    vector = torch.linspace(-1, 1, 50)
    assert float((vector @ one).norm() / vector.norm()) == pytest.approx(1, abs=0.1)


def test_projections_are_the_bits_of_a_published_function():
    # The first bytes of SHAKE-256 of nothing, as published: 46 b9 dd 2b
    signs = chance.projection("", 4, 8) > 0
    found = np.packbits(signs.numpy().astype(np.uint8), axis=1).ravel()
    assert bytes(found).hex() == "46b9dd2b"


def test_biases_lie_evenly_between_minus_one_and_one():
    values = chance.biases("key", 4000)
    assert values.abs().max() <= 1
    assert float(values.mean()) == pytest.approx(0, abs=0.05)
    assert float(values.var()) == pytest.approx(1 / 3, abs=0.02)


# Projecting.


def test_pools_look_at_real_states_only():
    states = torch.tensor([[[1.0], [3.0], [99.0]]])
    mask = torch.tensor([[True, True, False]])
    mean, deviation = projecting.mean_and_deviation(states, mask)
    assert [float(mean), float(deviation), float(projecting.maximum(states, mask))] == [2, 1, 3]


def test_places_near_each_other_are_described_alike():
    features = places.place_features(torch.linspace(0, 1, 9).unsqueeze(1))
    nearest = torch.cdist(features, features).argsort(dim=1)[:, 1]
    assert (nearest - torch.arange(9)).abs().tolist() == [1] * 9


# Text.


def words_of(string):
    return [tuple(word) for word in text.words_of(string)]


def test_words_are_found_with_their_sentence_and_place():
    assert words_of("A Cat. It’s 3.5!\n\nGO") == [
        ("a", 0, 0),
        ("cat", 0, 1),
        ("it", 1, 0),
        ("s", 1, 1),
        ("3", 1, 2),
        ("5", 1, 3),
        ("go", 2, 0),
    ]


@pytest.mark.parametrize("string", ["", " \n", "...!?", "😀"])
def test_a_text_without_words_is_one_word_without_letters(string):
    assert words_of(string) == [("", 0, 0)]


def test_a_long_run_of_letters_is_cut_into_words():
    assert [len(word.letters) for word in text.words_of("x" * 70)] == [32, 32, 6]


def test_any_string_can_be_encoded():
    encode(Text("\ud800 broken"), Text("日本語のテキスト"), Text("ﬁne ＦＵＬＬ"), Text("\x00"))


def test_capitals_and_punctuation_change_nothing():
    one, other = encode(Text("A red cat, asleep.")), encode(Text("a RED cat asleep"))
    torch.testing.assert_close(one.global_feature, other.global_feature)


def test_texts_that_share_words_are_closer_than_texts_that_do_not():
    found = cosines(
        encode(
            Text("a red cat sleeps on the sofa"),
            Text("on the sofa there is a red cat"),
            Text("two boats near some rocky shore"),
            width=512,
        )
    )
    assert found[0, 1] > 0.5
    assert found[0, 2] < 0.3


def test_a_word_is_closer_to_its_plural_than_to_another_word():
    found = cosines(encode(Text("umbrella"), Text("umbrellas"), Text("bridge"), width=512))
    assert found[0, 1] > found[0, 2] + 0.05


def test_the_order_of_words_is_heard_in_the_global_feature():
    found = cosines(encode(Text("red cat blue dog"), Text("blue cat red dog"), width=512))
    assert 0.8 < found[0, 1] < 0.99


def test_a_word_that_is_repeated_counts_less_each_time():
    counts = text._fading_counts(text.Counter({"one": 1, "three": 3, "seven": 7}))
    assert counts.tolist() == [1, 2, 3]


def test_a_state_says_which_word_it_is_and_where():
    encoded = encode(Text("boat cat boat lamp"), width=512)
    states = torch.nn.functional.normalize(real_states(encoded), dim=1)
    found = states @ states.T
    assert 0.99 > found[0, 2] > max(found[0, 1], found[0, 3]) + 0.2


def test_long_texts_have_bounded_states_that_cover_all_of_it():
    base = [f"word{number}" for number in range(200)]
    states = real_states(encode(Text(" ".join(base))))
    changed = real_states(encode(Text(" ".join([*base[:-1], "end"]))))
    assert len(states) == 48
    moved = (states - changed).norm(dim=1)
    assert moved.argmax() == 47


# Pictures.


def planes(pixels):
    return torch.from_numpy(pixels).permute(2, 0, 1).unsqueeze(0)


def plain(red, green, blue, side=12):
    return planes(np.full((side, side, 3), (red, green, blue), np.uint8))


def looks(pictures, grid=1):
    return cells.measured_cells(pictures, grid).looks


@pytest.mark.parametrize(
    ("colour", "place"),
    [((0, 0, 0), 0), ((255, 255, 255), 26), ((255, 0, 0), 18), ((0, 0, 255), 2)],
)
def test_a_pure_colour_is_counted_as_that_colour(colour, place):
    shares = looks(plain(*colour))[0, 0, 0, :27] + cells.TYPICAL_COLOUR
    assert shares.argmax() == place
    assert float(shares[place]) == pytest.approx(1)


def test_the_shares_of_all_colours_add_up_to_one():
    pictures = torch.stack([planes(picture(seed, 24, 24))[0] for seed in range(3)])
    shares = looks(pictures, 2)[..., :27] + cells.TYPICAL_COLOUR
    torch.testing.assert_close(shares.square().sum(dim=-1), torch.ones(3, 2, 2))


def test_a_plain_picture_has_neither_contrast_nor_edges():
    found = looks(plain(80, 120, 40))[0, 0, 0]
    assert (found[30:33] + cells.TYPICAL_DEVIATION).abs().max() < 1e-5
    assert float(found[33] + cells.TYPICAL_STRENGTH) == pytest.approx(0)
    assert not found[34:42].any()


def stripes(across):
    """Soft waves of brightness, across or down."""
    wave = 128 + 100 * np.sin(np.arange(24) / 2)
    rows = np.repeat(wave[None, :], 24, axis=0)
    return planes(np.repeat((rows if across else rows.T)[..., None], 3, axis=2).astype(np.uint8))


def test_the_first_wave_of_edges_turns_its_sign_with_the_picture():
    upright, lying = (looks(stripes(across))[0, 0, 0, 34:36] for across in (True, False))
    assert float(upright[0]) == pytest.approx(-float(lying[0]), abs=1e-3)
    assert float(upright[0]) > 0.9
    assert abs(float(upright[1])) < 1e-3


def test_shapes_are_the_same_whichever_way_a_picture_is_turned():
    pixels = picture(3, 24, 24)
    found = [
        cells.shape_features(looks(planes(np.rot90(pixels, turns).copy()))[..., :42])
        for turns in range(4)
    ]
    for turned in found[1:]:
        torch.testing.assert_close(turned, found[0], rtol=0, atol=1e-4)


def test_neighbourhoods_are_means_over_the_cells_that_there_are():
    grid = torch.arange(9.0).reshape(1, 3, 3, 1)
    around = cells.neighbourhoods(grid)[0, :, :, 0]
    assert [float(around[1, 1]), float(around[0, 0])] == [4, (0 + 1 + 3 + 4) / 4]


def test_the_quarters_of_a_cell_stand_side_by_side_row_by_row():
    pixels = np.zeros((24, 24, 3), np.uint8)
    pixels[:12, 12:] = 255  # upper right
    quarters = cells.measured_cells(planes(pixels), 1).quarters[0, 0, 0].reshape(4, 15)
    assert quarters[:, 0].tolist() == pytest.approx([-0.5, 0.5, -0.5, -0.5])


def test_the_size_of_a_picture_matters_little():
    small = picture(5, 96, 96)
    large = np.kron(small, np.ones((3, 3, 1), np.uint8))
    assert cosines(encode(Image(small), Image(large)))[0, 1] > 0.99


def test_a_change_in_a_corner_is_seen_there_and_in_the_whole():
    before = picture(6, 96, 96)
    after = before.copy()
    after[:10, :10] = (255, 0, 0)
    moved = (real_states(encode(Image(before))) - real_states(encode(Image(after)))).norm(dim=1)
    assert moved.argmax() == 0
    assert moved[36] > 0
    assert not moved[[14, 21, 35]].any()


def test_a_state_says_where_it_is():
    states = real_states(encode(Image(np.full((96, 96, 3), 90, np.uint8))))
    assert torch.pdist(states[:36]).min() > 0.1


# Videos.


def movement(item):
    """Mean movement across and down, in blocks, where anything moves."""
    pictures = cells.rasters(item.frames, video.SIDE)
    planes = video.over_time(cells.opponent_planes(pictures), video.FRAMES)
    found = video.movements(planes, video.GRID)
    return found[..., 6].sum().item(), found[..., 7].sum().item()


@pytest.mark.parametrize(("across", "down"), [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_movement_has_the_direction_in_which_things_move(across, down):
    found_across, found_down = movement(moving_block(across, down))
    moves, rests = (found_across, found_down) if across else (found_down, found_across)
    assert moves * (across + down) > 0.5
    assert abs(rests) < abs(moves) / 5


def test_nothing_moves_in_a_still_video():
    assert movement(moving_block(0, 0)) == (0, 0)


def test_a_video_that_runs_backwards_is_another_one():
    there, back = moving_block(2, 0), moving_block(-2, 0)
    assert cosines(encode(there, back))[0, 1] < 0.999


@pytest.mark.parametrize(
    ("frames", "chosen"),
    [
        (1, [0] * 8),
        (4, [0, 0, 1, 1, 2, 2, 3, 3]),
        (8, [*range(8)]),
        (16, [1, 3, 5, 7, 9, 11, 13, 15]),
    ],
)
def test_frames_are_chosen_evenly(frames, chosen):
    numbered = np.arange(frames, dtype=np.uint8)[:, None, None, None].repeat(3, axis=3)
    assert video.sampled_frames(Video(numbered, 1.0)).ravel()[::3].tolist() == chosen


# Sounds.


def middle_of_band(hertz):
    mel = 2595 * np.log10(1 + np.array([50.0, hertz, 8000.0]) / 700)
    return (mel[1] - mel[0]) / (mel[2] - mel[0]) * 65 - 1


@pytest.mark.parametrize("hertz", [200, 700, 3000])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_a_tone_is_loudest_in_its_band_at_any_rate(hertz, rate):
    item = tone(hertz, rate=rate)
    loudness = audio.log_mel(item.samples, item.rate).mean(dim=0)
    assert abs(int(loudness.argmax()) - middle_of_band(hertz)) <= 1


def test_half_the_amplitude_is_six_decibels_less():
    loud, soft = (audio.log_mel(tone(700, loudness=amount).samples, 8000) for amount in (0.5, 0.25))
    assert float(loud.max() - soft.max()) * 40 == pytest.approx(6.02, abs=0.05)


def test_silence_is_minus_one_everywhere():
    assert (audio.log_mel(np.zeros(4000, np.float32), 8000) == -1).all()


def test_states_follow_the_sound_in_time():
    silence = np.zeros(8000, np.float32)
    item = Audio(np.concatenate((silence, tone(700).samples)), 8000)
    descriptions = audio.describe_audio([item]).descriptions[0]
    loudest = descriptions[:, : audio.BANDS].amax(dim=1)
    half = len(loudest) // 2
    assert (loudest[: half - 1] == -1).all()
    assert (loudest[half + 1 :] > 0).all()


@pytest.mark.parametrize("samples", [0, 1, 511, 512, 513])
def test_the_shortest_sound_is_one_state(samples):
    encoded = encode(Audio(np.zeros(samples, np.float32), 8000))
    assert encoded.mask.tolist() == [[True]]


def test_two_orders_of_the_same_tones_are_different_sounds():
    low, high = tone(300).samples, tone(1500).samples
    one, other = (Audio(np.concatenate(parts), 8000) for parts in ((low, high), (high, low)))
    assert cosines(encode(one, other))[0, 1] < 0.99
