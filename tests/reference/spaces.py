"""The sets of App. A.1 to A.3, copied from the paper with the names it gives the vectors."""

GROUPS = (("g0", "z1", "z2", "z3"), ("g1", "z4", "z5", "z6"))

G0 = frozenset({"g0"})
COARSE_EXPANDED = frozenset({"g0", "g1"})
FINE_REFINED = frozenset({"g0", "z1"})
BALANCED = frozenset({"g0", "g1", "z1", "z4"})
FULL = frozenset({"g0", "z1", "z2", "z3", "g1", "z4", "z5", "z6"})

# App. A.2: the table of reachable representations, and the arrows of steps 1, 2 and 3.
REACHABLE = (G0, COARSE_EXPANDED, FINE_REFINED, BALANCED, FULL)
ARROWS = (
    (G0, COARSE_EXPANDED),
    (G0, FINE_REFINED),
    (COARSE_EXPANDED, BALANCED),
    (FINE_REFINED, BALANCED),
    (BALANCED, FULL),
)

# App. A.3: the ordered prefixes of each group, and all combinations of one of each.
PREFIXES_1 = (
    frozenset({"g0"}),
    frozenset({"g0", "z1"}),
    frozenset({"g0", "z1", "z2"}),
    frozenset({"g0", "z1", "z2", "z3"}),
)
PREFIXES_2 = (
    frozenset[str](),
    frozenset({"g1"}),
    frozenset({"g1", "z4"}),
    frozenset({"g1", "z4", "z5"}),
    frozenset({"g1", "z4", "z5", "z6"}),
)
ORACLE_SETS = frozenset(first | second for first in PREFIXES_1 for second in PREFIXES_2)
ORACLE_ARROWS = frozenset(
    (smaller, larger)
    for smaller in ORACLE_SETS
    for larger in ORACLE_SETS
    if smaller < larger and len(larger) == len(smaller) + 1
)
