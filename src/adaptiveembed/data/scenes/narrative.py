"""A scene as somebody tells it who saw or heard it: several sentences, as careful as people are.

A speaker mentions each fact at the rate that the settings give for the kind of scene, in one of
several wordings, now and then vaguely or wrongly, the striking things mostly first. Of a picture
looks are told, of a video motion too, of a sound what is heard and in which order.
"""

from collections.abc import Mapping, Sequence

from adaptiveembed.data.scenes import words
from adaptiveembed.data.scenes.draws import Draws, Stream
from adaptiveembed.data.scenes.latent import COLUMNS, LOOKS, SOUNDS, Action, Scene, SceneKind, Thing
from adaptiveembed.data.scenes.settings import ScenesSettings, Telling
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality

MEDIA = (Modality.IMAGE, Modality.VIDEO, Modality.AUDIO)
"""What a scene can be told from."""
FEWEST_SENTENCES, MOST_SENTENCES = 3, 8
JUMBLED_RATE = 0.25
"""Share of narratives in which even the main thing may come last."""


def narrative(scene: Scene, medium: Modality, settings: ScenesSettings) -> str:
    """The scene as told by somebody who knows it from this medium."""
    if medium not in MEDIA:
        raise SettingError(
            f"a narrative of {medium} was asked for; scenes are told from {', '.join(MEDIA)}"
        )
    draws = Draws(scene.seed, Stream.TEXT, len(MEDIA) * scene.number + MEDIA.index(medium))
    speaker = Speaker(draws, settings, telling_of(scene.kind, settings), medium)
    return " ".join(_arranged(_striking_first(scene, speaker), draws))


def telling_of(kind: SceneKind, settings: ScenesSettings) -> Telling:
    """The rates at which scenes of this kind are told."""
    match kind:
        case SceneKind.DISTINCT:
            return settings.distinct_telling
        case SceneKind.FINE:
            return settings.fine_telling
        case SceneKind.TWIN:
            return settings.twin_telling


class Speaker:
    """Somebody's choices: what to mention, and how to say it."""

    def __init__(
        self, draws: Draws, settings: ScenesSettings, telling: Telling, medium: Modality
    ) -> None:
        self.draws = draws
        self.settings = settings
        self.telling = telling
        self.medium = medium

    def mentions(self, rate: float) -> bool:
        return self.draws.chance(rate)

    def detail(self, value: int, values: Sequence[int], wordings: Mapping[int, words.Words]) -> str:
        """A wording of a detail, hardly ever of a wrong one; empty if it is not mentioned."""
        if not self.mentions(self.telling.details):
            return ""
        return self.wording(wordings[self.remembered(value, values)])

    def remembered(self, value: int, values: Sequence[int]) -> int:
        """The value, or, at the rate of errors, another one."""
        if not self.draws.chance(self.settings.error_rate):
            return value
        return self.draws.one_of([one for one in values if one != value])

    def wording(self, wordings: words.Words) -> str:
        """Mostly the common wording, else one of the others."""
        if len(wordings) == 1 or self.draws.chance(self.settings.common_word_rate):
            return wordings[0]
        return self.draws.one_of(wordings[1:])

    def vague(self) -> bool:
        return self.draws.chance(self.settings.vague_rate)


def _striking_first(scene: Scene, speaker: Speaker) -> list[str]:
    """A sentence for each thing that is mentioned, after those of the setting."""
    describe = _heard if speaker.medium is Modality.AUDIO else _seen
    main, others = scene.things[0], speaker.draws.shuffled(scene.things[1:])
    sentences = _setting_sentences(scene, speaker)
    if speaker.mentions(speaker.telling.main):
        sentences.append(describe(scene, main, speaker))
    for thing in others:
        if speaker.mentions(speaker.telling.others):
            sentences.append(describe(scene, thing, speaker))
    return sentences


def _arranged(sentences: list[str], draws: Draws) -> list[str]:
    """The sentences between others that say nothing, now and then in another order."""
    if draws.chance(JUMBLED_RATE):
        sentences = draws.shuffled(sentences)
    length = FEWEST_SENTENCES + draws.below(MOST_SENTENCES - FEWEST_SENTENCES + 1)
    fillers = draws.shuffled(words.FILLERS)[: max(0, length - len(sentences))]
    for filler in fillers:
        sentences.insert(draws.below(len(sentences) + 1), filler)
    return sentences


# The setting.

PLACE_SENTENCES: dict[Modality, words.Words] = {
    Modality.IMAGE: ("This is a {ground}", "The picture shows a {ground}", "We see a {ground}"),
    Modality.VIDEO: ("This is a {ground}", "The clip shows a {ground}", "We see a {ground}"),
    Modality.AUDIO: (
        "This is a {ground}",
        "It sounds like a {ground}",
        "We seem to be at a {ground}",
    ),
}
FAR_CLAUSES: words.Words = (" with {far} in the distance", " before {far}", " and {far} behind it")
FAR_SENTENCES: words.Words = ("In the distance there is {far}", "Far away is {far}")


def _setting_sentences(scene: Scene, speaker: Speaker) -> list[str]:
    ground, skyline, weather, daytime = (
        speaker.wording(wordings[value]) if speaker.mentions(speaker.telling.setting) else ""
        for wordings, value in zip(_SETTING_WORDS, scene.setting, strict=True)
    )
    told = [_place_sentence(ground, skyline, speaker), _time_sentence(weather, daytime, speaker)]
    return [_sentence(one) for one in told if one]


_SETTING_WORDS = words.GROUNDS, words.SKYLINES, words.WEATHERS, words.DAYTIMES


def _place_sentence(ground: str, skyline: str, speaker: Speaker) -> str:
    if not ground:
        return speaker.draws.one_of(FAR_SENTENCES).format(far=skyline) if skyline else ""
    place = speaker.draws.one_of(PLACE_SENTENCES[speaker.medium]).format(ground=ground)
    return place + (speaker.draws.one_of(FAR_CLAUSES).format(far=skyline) if skyline else "")


def _time_sentence(weather: str, daytime: str, speaker: Speaker) -> str:
    if weather and daytime:
        return f"It is {_a(f'{weather} {daytime}')}"
    if weather:
        return f"The weather is {weather}"
    if daytime:
        return speaker.draws.one_of(("It is {}", "The time is {}")).format(daytime)
    return ""


# Things that are seen.

SEEN_SENTENCES: words.Words = ("There {are} {what}", "I can see {what}", "I notice {what}")


def _seen(scene: Scene, thing: Thing, speaker: Speaker) -> str:
    what = _looks(thing, speaker)
    sentence = speaker.draws.one_of(SEEN_SENTENCES)
    said = sentence.format(what=what, are="is" if thing.copies == 1 else "are")
    where = _where(thing, speaker)
    moving = ""
    if speaker.medium is Modality.VIDEO:
        moving = speaker.detail(thing.action, tuple(Action), words.ACTIONS)
    return _sentence(said + (f" {where}" if where else "") + (f", {moving}" if moving else ""))


def _looks(thing: Thing, speaker: Speaker) -> str:
    """A thing with the adjectives that the speaker finds worth saying."""
    size = speaker.detail(thing.size, LOOKS["size"], words.SIZES)
    texture = speaker.detail(thing.texture, LOOKS["texture"], words.TEXTURES)
    colour = _colour(thing, speaker)
    copies = thing.copies
    many = ""
    if speaker.mentions(speaker.telling.details):
        copies = speaker.remembered(thing.copies, LOOKS["copies"])
        many = speaker.wording(words.COUNTS[copies])
    noun = _name(thing, speaker)
    named = " ".join(
        one for one in (size, texture, colour, plural(noun) if copies > 1 else noun) if one
    )
    if many in {"", "a"}:
        return f"some {named}" if copies > 1 else _a(named)
    return f"{many} {named}"


def _colour(thing: Thing, speaker: Speaker) -> str:
    if speaker.vague() and speaker.mentions(speaker.telling.details):
        return _class_of(thing.colour, words.VAGUE_COLOURS)
    return speaker.detail(thing.colour, LOOKS["colour"], words.COLOURS)


def _where(thing: Thing, speaker: Speaker) -> str:
    if not speaker.mentions(speaker.telling.details):
        return ""
    row, column = divmod(speaker.remembered(thing.place, LOOKS["place"]), COLUMNS)
    rough, fine = speaker.wording(words.ROWS[row]), speaker.wording(words.COLUMNS[column])
    return speaker.draws.one_of((rough, fine)) if speaker.vague() else f"{rough} {fine}"


def _name(thing: Thing, speaker: Speaker) -> str:
    if speaker.vague():
        return _class_of(thing.kind, words.VAGUE_KINDS)
    return speaker.wording(words.KINDS[thing.kind])


def _class_of(value: int, classes: Mapping[str, Sequence[int]]) -> str:
    return next(name for name, members in classes.items() if value in members)


# Things that are heard.


def _heard(scene: Scene, thing: Thing, speaker: Speaker) -> str:
    pitch = speaker.detail(thing.pitch, SOUNDS["pitch"], words.PITCHES)
    repeats = speaker.detail(thing.repeats, SOUNDS["repeats"], words.REPEATS)
    contour = speaker.detail(thing.contour, SOUNDS["contour"], words.CONTOURS)
    noun, cry = _name(thing, speaker), speaker.wording(words.CRIES[thing.kind])
    who = _a(" ".join(one for one in (pitch, noun) if one))
    what = words.VAGUE_CRY if noun in words.VAGUE_KINDS else cry
    when = _when(scene, thing, speaker)
    said = " ".join(one for one in (who, what, repeats) if one)
    return _sentence((f"{when}, " if when else "") + said + (f", {contour}" if contour else ""))


def _when(scene: Scene, thing: Thing, speaker: Speaker) -> str:
    if not speaker.mentions(speaker.telling.details):
        return ""
    turn = scene.order.index(scene.things.index(thing))
    last = turn == len(scene.order) - 1
    return speaker.wording(words.LAST if last else words.ORDINALS[turn])


# English.


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" and not noun.startswith("uk") else f"a {noun}"


def plural(noun: str) -> str:
    """More than one of what a noun names."""
    if noun.endswith("fish"):
        return noun
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
