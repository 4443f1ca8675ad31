"""What users get who search with something of the wrong kind."""

from tests.plain import check_answers

NO_GALLERY = (
    "DtypeError: what is searched is a Gallery, got CandidateSets; "
    "use Gallery.from_candidates(ids, candidates)"
)
NO_QUERIES = (
    "DtypeError: queries are CandidateSets here, got CAES; give the .candidates of a CAES, or "
    "CandidateSets.normalized(tensor, layout)"
)
NO_COUNT = "SettingError: k is {}; ask for a whole number of items, at least one"


def test_what_is_searched_is_a_gallery():
    caes = "ae.FixedAllocator(selection).allocate(text)"
    table = "ae.rank_table({}, {}, np.arange(5)[:, None], {})"
    check_answers(
        {
            f"ae.search(image, {caes}, 1)": NO_GALLERY,
            table.format("image", "text", "[selection]"): NO_GALLERY,
            table.format("task.gallery", caes, "[selection]"): NO_QUERIES,
            f"ae.search(task.gallery, {caes}, 2.0)": NO_COUNT.format("2.0"),
            f"ae.search(task.gallery, {caes}, '3')": NO_COUNT.format("'3'"),
        }
    )


def test_the_selections_of_a_rank_table_are_a_list():
    table = "ae.rank_table(task.gallery, text, np.arange(5)[:, None], {})"
    check_answers(
        {
            table.format("selection"): "UnknownSelectionError: a rank table takes a list of "
            "selections, got selection 1+1; put it in a list",
            table.format("['1+1']"): "UnknownSelectionError: got '1+1' where a selection is "
            "needed; use Selection.parse(text, layout)",
        }
    )


def test_ids_in_a_list_or_one_by_one_are_kept_as_a_tuple():
    ids = "('a', 'b', 'c', 'd', 'e')"
    check_answers(
        {
            "ae.Gallery(list('abcde'), task.gallery.rows, layout).ids": ids,
            "ae.Gallery.from_candidates(iter('abcde'), text).ids": ids,
        }
    )
