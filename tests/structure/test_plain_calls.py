"""What users get who pass lists for tuples, or arrays for tensors."""

from tests.plain import check_answers

NOT_WHOLE = (
    "SettingError: {} are whole numbers, for example (4, 4), got {}; a text such as '4+4' {}"
)


def not_whole(meaning, given):
    return NOT_WHOLE.format(meaning, given, "is read by parse")


def no_tensor(given, remedy):
    wrong = f"candidate sets hold a torch tensor, got {given}"
    return f"DtypeError: {wrong}; convert with {remedy}(vectors)"


def test_lists_and_other_integers_make_the_same_keys_as_tuples():
    check_answers(
        {
            "{ae.GroupLayout([2, np.int32(2)]): 'found'}[layout]": "found",
            "{ae.Selection(ae.GroupLayout([2, 2]), [1, 1]): 'found'}[selection]": "found",
            "ae.Selection(layout, np.array([1, 0])).prefix_lengths": "(1, 0)",
            "ae.CAES(text, [selection] * 5).selections == (selection,) * 5": "True",
            "ae.SelectionSpace(layout, selection, [(selection, ae.Selection(layout, (2, 1)))])"
            " == ae.SelectionSpace(layout, selection, ((selection, ae.Selection(layout, (2, 1))),))"
            "": "True",
        }
    )


NO_SELECTION = "UnknownSelectionError: got '1+1' where a selection is needed; use Selection.parse("


def no_layout(given):
    return (
        f"LayoutMismatchError: a group layout is needed, got {given}; write for example "
        "GroupLayout((4, 4)), or GroupLayout.parse('4+4')"
    )


def no_selections(given):
    wrong = f"UnknownSelectionError: a CAES has a list of selections, one per item, got {given!r}"
    return f"{wrong}; use FixedAllocator to give every item the same"


def test_a_text_is_no_selection_and_a_tuple_no_layout():
    check_answers(
        {
            "ae.activate(text, '1+1')": f"{NO_SELECTION}text, layout)",
            "ae.CAES(text, ['1+1'] * 5)": f"{NO_SELECTION}text, layout)",
            "ae.CAES(text, selection)": no_selections("1+1"),
            "ae.CAES(text, '1+1')": no_selections("1+1"),
            "ae.Selection.parse('1+1', '2+2')": no_layout("'2+2'"),
            "ae.Selection((2, 2), (1, 1))": no_layout("(2, 2)"),
            "ae.coarse_to_fine((2, 2))": no_layout("(2, 2)"),
            "ae.every_prefix('2+2')": no_layout("'2+2'"),
            "ae.FixedAllocator('1+1')": f"{NO_SELECTION}text, layout)",
            "ae.CandidateSets(text.vectors, (2, 2))": no_layout("(2, 2)"),
            "ae.CandidateSets.normalized(text.vectors, '2+2')": no_layout("'2+2'"),
            "ae.Gallery(list('abcde'), task.gallery.rows, (2, 2))": no_layout("(2, 2)"),
        }
    )


def test_wrong_kinds_are_answered_by_what_to_do():
    check_answers(
        {
            "ae.GroupLayout((2.5, 1))": not_whole("group sizes", "(2.5, 1)"),
            "ae.GroupLayout('4+4')": not_whole("group sizes", "'4+4'"),
            "ae.GroupLayout(8)": not_whole("group sizes", "8"),
            "ae.Selection(layout, (1.0, 1))": not_whole("prefix lengths", "(1.0, 1)"),
            "ae.Selection(layout, '1+1')": not_whole("prefix lengths", "'1+1'"),
            "ae.CandidateSets(text.numpy(), layout)": no_tensor("ndarray", "torch.from_numpy"),
            "ae.CandidateSets.normalized(text.numpy(), layout)": no_tensor(
                "ndarray", "torch.from_numpy"
            ),
            "ae.CandidateSets([[[1.0]]], layout)": no_tensor("list", "torch.tensor"),
            "ae.CandidateSets.normalized([[[1.0]]], layout)": no_tensor("list", "torch.tensor"),
        }
    )
