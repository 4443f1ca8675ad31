"""Dropout masks of items, number by number, in Python's unbounded integers."""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(number: int) -> int:
    """SplitMix64's output function."""
    number &= MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def item_key(seed: int, step: int, item: int) -> int:
    """The key of one item at one step of one run."""
    return mixed(mixed(mixed(seed) + step) + item)


def kept(key: int, stream: int, count: int, dropped: int) -> list[bool]:
    """Which of ``count`` numbers are kept when ``dropped`` of 65,536 are dropped."""
    found = []
    for place in range(count):
        block, lane = divmod(place, 4)
        random = mixed(key + ((stream << 32) + block + 1) * GOLDEN)
        bits = (random >> (16 * lane)) & 0xFFFF
        # two's complement: the upper half of the numbers are the negative ones, and come first
        found.append((bits + 0x8000) % 0x10000 >= dropped)
    return found
