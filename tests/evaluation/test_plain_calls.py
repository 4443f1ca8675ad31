"""What users get who evaluate with something of the wrong kind."""

from tests.plain import check_answers

NO_LIST = (
    "SettingError: a list of tasks or tables is needed, got {}; put it in a list, also a single"
)
NO_ALLOCATOR = "SettingError: an allocator or a selection is needed, got"
NO_IDS = "DtypeError: {} are a list of texts, got the text {!r}; use [{!r}]"
NO_ARRAY = (
    "DtypeError: positives are a numpy array of integers, got {}; convert with np.asarray(posi"
)


def test_tasks_are_a_list():
    table = "evaluation.evaluate_every_selection(task, ae.every_prefix(layout))"
    check_answers(
        {
            "ae.evaluate(task, selection)": NO_LIST.format("RetrievalTask") + " one",
            "ae.evaluate(iter(tasks), selection)": NO_LIST.format("tuple_iterator") + " one",
            f"evaluation.best_fixed({table})": NO_LIST.format("SelectionRanks") + " one",
        }
    )


def test_what_allocates_is_an_allocator_or_a_selection():
    text = f"{NO_ALLOCATOR} the text '1+1'; use Selection.parse('1+1', layout)"
    check_answers(
        {
            "ae.evaluate(tasks, '1+1')": text,
            "ae.evaluate([task], {direction: '1+1'})": text,
            "ae.evaluate(tasks, 3)": f"{NO_ALLOCATOR} 3; give a Selection, a mapping by direction, "
            "or an object whose method allocate returns a CAES",
        }
    )


def test_ids_are_a_list_and_a_list_of_lists_where_a_query_has_several():
    check_answers(
        {
            "ae.RetrievalTask(direction, 'de', text[:2], task.gallery, task.positives)": (
                NO_IDS.format("query ids", "de", "de")
            ),
            "ae.RetrievalTask(direction, ['d', 'e'], text[:2], task.gallery, task.positives)"
            ".query_ids": "('d', 'e')",
        }
    )


def test_positives_are_an_array():
    check_answers(
        {
            "ae.RetrievalTask(direction, ('q',), text[:1], task.gallery, [[0]])": (
                NO_ARRAY.format("list") + "tives)"
            ),
            "ae.OracleAllocator(ae.every_prefix(layout), task.gallery, torch.tensor([[0]]))": (
                NO_ARRAY.format("Tensor") + "tives)"
            ),
        }
    )


def test_a_direction_is_no_text():
    wrong = (
        "SettingError: a direction is needed, got 'text→image'; write for example "
        "Direction(Modality.TEXT, Modality.IMAGE)"
    )
    check_answers(
        {
            "ae.full_gallery(list('abcde'), text, image, ['a'], 'text→image')": wrong,
            "ae.RetrievalTask('text→image', 'd', text[:1], task.gallery, task.positives)": wrong,
        }
    )
