"""The words for the facts of a scene: the most common one first, then its synonyms."""

from adaptiveembed.data.scenes.latent import (
    Action,
    Colour,
    Contour,
    Daytime,
    Ground,
    Kind,
    Pitch,
    Size,
    Skyline,
    Texture,
    Weather,
)

Words = tuple[str, ...]

GROUNDS: dict[int, Words] = {
    Ground.GRASS: ("meadow", "grassy field", "lawn"),
    Ground.SAND: ("beach", "sandy beach", "stretch of sand"),
    Ground.WATER: ("lake", "sea", "stretch of water"),
    Ground.SNOWFIELD: ("snowfield", "snowy plain", "field of snow"),
    Ground.ROAD: ("road", "street", "paved road"),
    Ground.TILES: ("tiled square", "plaza", "courtyard"),
    Ground.PLANKS: ("wooden deck", "boardwalk", "deck of planks"),
    Ground.ROCK: ("rocky plain", "stony plain", "field of rocks"),
}
SKYLINES: dict[int, Words] = {
    Skyline.OPEN: ("an open horizon", "an empty horizon", "nothing but sky"),
    Skyline.MOUNTAINS: ("mountains", "high peaks", "a mountain range"),
    Skyline.HILLS: ("hills", "rolling hills", "green slopes"),
    Skyline.HOUSES: ("rooftops", "a row of roofs", "a village"),
    Skyline.TOWERS: ("towers", "tall buildings", "a city"),
    Skyline.FOREST: ("a forest", "pine woods", "firs"),
    Skyline.BRIDGE: ("a bridge", "a viaduct", "a long bridge"),
    Skyline.CLIFF: ("a cliff", "a rock wall", "a steep cliff"),
}
WEATHERS: dict[int, Words] = {
    Weather.CLEAR: ("clear", "cloudless"),
    Weather.CLOUDS: ("cloudy", "clouded"),
    Weather.RAIN: ("rainy", "wet", "drizzly"),
    Weather.SNOW: ("snowy", "wintry"),
    Weather.FOG: ("foggy", "misty", "hazy"),
    Weather.STORM: ("stormy", "thundery"),
}
DAYTIMES: dict[int, Words] = {
    Daytime.DAWN: ("dawn", "early morning", "daybreak"),
    Daytime.DAY: ("day", "noon", "afternoon"),
    Daytime.DUSK: ("dusk", "evening", "sunset"),
    Daytime.NIGHT: ("night", "midnight"),
}

KINDS: dict[int, Words] = {
    Kind.BALL: ("ball", "sphere"),
    Kind.BELL: ("bell", "handbell"),
    Kind.BIRD: ("bird", "songbird", "sparrow"),
    Kind.BOAT: ("boat", "sailboat", "ship"),
    Kind.BOTTLE: ("bottle", "flask"),
    Kind.CAR: ("car", "automobile"),
    Kind.CAT: ("cat", "kitten"),
    Kind.CLOCK: ("clock", "alarm clock"),
    Kind.DRUM: ("drum", "snare drum"),
    Kind.FISH: ("fish", "goldfish"),
    Kind.FLAG: ("flag", "banner", "pennant"),
    Kind.LAMP: ("lamp", "table lamp"),
    Kind.TREE: ("tree", "oak"),
    Kind.HOUSE: ("house", "cottage", "hut"),
    Kind.CUP: ("cup", "mug"),
    Kind.KEY: ("key", "door key"),
    Kind.BALLOON: ("balloon", "party balloon"),
    Kind.ROCKET: ("rocket", "spaceship"),
    Kind.SNAKE: ("snake", "serpent"),
    Kind.UMBRELLA: ("umbrella", "parasol"),
    Kind.GUITAR: ("guitar", "ukulele"),
    Kind.ROBOT: ("robot", "android"),
    Kind.HAMMER: ("hammer", "mallet"),
    Kind.BEE: ("bee", "bumblebee"),
}
VAGUE_KINDS: dict[str, tuple[Kind, ...]] = {
    "animal": (Kind.BIRD, Kind.CAT, Kind.FISH, Kind.SNAKE, Kind.BEE),
    "vehicle": (Kind.BOAT, Kind.CAR, Kind.ROCKET),
    "instrument": (Kind.BELL, Kind.DRUM, Kind.GUITAR),
    "tool": (Kind.KEY, Kind.HAMMER, Kind.UMBRELLA),
    "toy": (Kind.BALL, Kind.BALLOON, Kind.ROBOT),
    "object": (
        Kind.BOTTLE,
        Kind.CLOCK,
        Kind.LAMP,
        Kind.CUP,
        Kind.FLAG,
        Kind.TREE,
        Kind.HOUSE,
    ),
}

COLOURS: dict[int, Words] = {
    Colour.RED: ("red", "crimson"),
    Colour.BLUE: ("blue", "azure"),
    Colour.YELLOW: ("yellow", "golden"),
    Colour.PURPLE: ("purple", "violet"),
    Colour.GREEN: ("green", "emerald"),
    Colour.ORANGE: ("orange", "amber"),
    Colour.WHITE: ("white", "ivory"),
    Colour.PINK: ("pink", "rosy"),
    Colour.BROWN: ("brown", "chestnut"),
    Colour.TURQUOISE: ("turquoise", "teal"),
    Colour.BLACK: ("black", "jet-black"),
    Colour.GREY: ("grey", "silver"),
}
VAGUE_COLOURS: dict[str, tuple[Colour, ...]] = {
    "dark": (Colour.BLUE, Colour.PURPLE, Colour.BROWN, Colour.BLACK),
    "bright": (Colour.RED, Colour.YELLOW, Colour.ORANGE, Colour.GREEN, Colour.TURQUOISE),
    "pale": (Colour.WHITE, Colour.GREY, Colour.PINK),
}
TEXTURES: dict[int, Words] = {
    Texture.PLAIN: ("plain", "single-coloured"),
    Texture.STRIPED: ("striped", "banded"),
    Texture.DOTTED: ("dotted", "spotted"),
    Texture.CHECKED: ("checked", "chequered"),
}
SIZES: dict[int, Words] = {
    Size.SMALL: ("small", "little", "tiny"),
    Size.MEDIUM: ("medium-sized", "average-sized"),
    Size.LARGE: ("large", "big", "huge"),
}
COUNTS: dict[int, Words] = {
    1: ("a", "one", "a single"),
    2: ("two", "a pair of"),
    3: ("three", "a group of three"),
}
ROWS: tuple[Words, ...] = (
    ("at the top", "high up"),
    ("in the middle", "halfway up"),
    ("at the bottom", "low down"),
)
COLUMNS: tuple[Words, ...] = (
    ("on the far left", "by the left edge"),
    ("left of the centre", "a bit to the left"),
    ("right of the centre", "a bit to the right"),
    ("on the far right", "by the right edge"),
)
ACTIONS: dict[int, Words] = {
    Action.REST: ("standing still", "not moving"),
    Action.LEFT: ("moving to the left", "drifting left"),
    Action.RIGHT: ("moving to the right", "drifting right"),
    Action.BOUNCE: ("bouncing up and down", "hopping"),
    Action.GROW: ("growing larger", "coming closer"),
    Action.SHRINK: ("getting smaller", "shrinking"),
    Action.SPIN: ("spinning around", "turning in circles"),
    Action.BLINK: ("blinking on and off", "flashing"),
}

CRIES: dict[int, Words] = {
    Kind.BALL: ("bounces", "thuds"),
    Kind.BELL: ("rings", "tolls"),
    Kind.BIRD: ("chirps", "sings"),
    Kind.BOAT: ("toots", "blows its horn"),
    Kind.BOTTLE: ("clinks", "tinkles"),
    Kind.CAR: ("rumbles", "revs"),
    Kind.CAT: ("meows", "mews"),
    Kind.CLOCK: ("ticks", "clicks"),
    Kind.DRUM: ("beats", "booms"),
    Kind.FISH: ("splashes", "flops"),
    Kind.FLAG: ("flutters", "flaps"),
    Kind.LAMP: ("hums", "drones"),
    Kind.TREE: ("rustles", "swishes"),
    Kind.HOUSE: ("creaks", "squeaks"),
    Kind.CUP: ("clatters", "rattles"),
    Kind.KEY: ("jingles", "jangles"),
    Kind.BALLOON: ("pops", "bursts"),
    Kind.ROCKET: ("whooshes", "roars"),
    Kind.SNAKE: ("hisses", "sizzles"),
    Kind.UMBRELLA: ("patters", "crackles"),
    Kind.GUITAR: ("twangs", "plays a chord"),
    Kind.ROBOT: ("beeps", "bleeps"),
    Kind.HAMMER: ("knocks", "pounds"),
    Kind.BEE: ("buzzes", "whirrs"),
}
VAGUE_CRY = "makes a sound"
PITCHES: dict[int, Words] = {
    Pitch.LOW: ("low", "deep"),
    Pitch.MIDDLE: ("mid-range", "medium-pitched"),
    Pitch.HIGH: ("high", "shrill"),
}
REPEATS: dict[int, Words] = {
    1: ("once", "a single time"),
    2: ("twice", "two times"),
    3: ("three times", "thrice"),
}
CONTOURS: dict[int, Words] = {
    Contour.STEADY: ("steadily", "evenly"),
    Contour.RISING: ("rising", "going up"),
    Contour.FALLING: ("falling", "going down"),
    Contour.TREMBLING: ("trembling", "wavering"),
}
ORDINALS: tuple[Words, ...] = (
    ("first", "to begin with"),
    ("second", "after that"),
    ("third", "thirdly"),
    ("fourth", "fourthly"),
    ("fifth", "fifthly"),
)
LAST: Words = ("last", "finally", "in the end")

FILLERS: tuple[str, ...] = (
    "That is about all there is.",
    "I quite like how it feels.",
    "It reminds me of a holiday.",
    "Nothing else catches my attention.",
    "The whole thing is a little strange.",
    "Someone must have arranged it this way.",
    "It is hard to say what it is about.",
    "I had to go over it more than once.",
    "Overall it seems rather peaceful.",
    "There may be more that I missed.",
    "I could imagine being there.",
    "It is nothing special, but I do not mind.",
)
"""Sentences that say nothing about a scene, so that length does not tell how much is told."""
