import pytest

from adaptiveembed.data.splits import SplitSettings
from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline.recipe import Method, Prefixes, Recipe, Space
from adaptiveembed.pipeline.recipe_files import built_in_recipes, read_recipe
from adaptiveembed.pipeline.settings import differences, read_settings, to_table
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.space import coarse_to_fine, every_prefix


@pytest.mark.parametrize("name", built_in_recipes())
def test_a_built_in_recipe_is_read_and_written_back(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert read_settings(Recipe, to_table(recipe)) == recipe
    recipe.objective()


def test_the_paper_s_recipe_has_the_paper_s_settings():
    recipe = read_recipe("paper")
    first, second = recipe.representation, recipe.allocation
    assert (first.temperature, first.training.epochs, first.training.batch_size) == (0.03, 20, 2048)
    assert first.training.optimizer.learning_rate == 1e-4
    assert (first.embedder.width, first.embedder.layers, first.embedder.heads) == (512, 4, 8)
    assert (second.policy.width, second.policy.heads) == (128, 4)
    assert (second.feedback.depth, second.training.epochs) == (50, 20)
    assert second.bank.sampling == "all"
    assert first.training.optimizer.schedule == "constant"
    assert first.training.optimizer.clip_norm is None


@pytest.mark.parametrize(
    ("base", "name", "changed"),
    [
        ("laptop", "without-mgcl", {"name", "representation.prefixes"}),
        ("tst", "without-feedback", {"name", "allocation.policy.kind"}),
        ("laptop", "single-group", {"name", "representation.embedder.layout"}),
        ("laptop", "metaembed", {"name", "method", "representation.embedder.layout"}),
        (
            "metaembed",
            "metaembed-small",
            {"name", "representation.budgets", "representation.embedder.layout"},
        ),
    ],
)
def test_a_variant_differs_from_its_base_in_what_it_is_called_after(base, name, changed):
    tables = [to_table(read_recipe(each)) for each in (base, name)]
    assert set(differences(*tables)) == changed


def test_assignments_change_a_recipe():
    recipe = read_recipe("laptop", ["representation.embedder.dim=64", "seed=7"])
    assert (recipe.representation.embedder.dim, recipe.seed) == (64, 7)


def test_a_file_builds_on_a_recipe_or_on_a_file_beside_it(tmp_path):
    (tmp_path / "first.toml").write_text('base = "laptop"\nname = "first"\nseed = 3\n')
    second = tmp_path / "second.toml"
    second.write_text('base = "first.toml"\nname = "second"\n')
    recipe = read_recipe(str(second))
    assert (recipe.name, recipe.seed) == ("second", 3)


def test_recipes_that_build_on_each_other_are_refused(tmp_path):
    path = tmp_path / "self.toml"
    path.write_text(f'base = "{path}"\n')
    with pytest.raises(SettingError, match="in turn"):
        read_recipe(str(path))


def test_an_unknown_name_is_answered_by_the_nearest():
    with pytest.raises(SettingError, match="did you mean laptop"):
        read_recipe("lapptop")


def test_a_base_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text("base = 3\n")
    with pytest.raises(SettingError, match="base is 3"):
        read_recipe(str(path))


def test_spaces_are_those_of_the_structure():
    layout = GroupLayout((4, 4))
    assert Space.COARSE_TO_FINE.on(layout) == coarse_to_fine(layout)
    assert Space.EVERY_PREFIX.on(layout) == every_prefix(layout)


def test_objectives_follow_the_method_and_the_prefixes():
    by_role = read_recipe("metaembed")
    assert by_role.method is Method.METAEMBED
    assert [str(one) for one in by_role.budgets] == ["1/1", "2/4", "4/8", "8/16", "16/64"]
    assert by_role.objective().budgets == by_role.budgets
    deployed = read_recipe("laptop", [f"representation.prefixes={Prefixes.DEPLOYED}"])
    assert deployed.objective().prefixes == deployed.space.nodes


def test_shares_that_leave_nothing_to_stage_one_are_refused():
    with pytest.raises(SettingError, match="leave nothing"):
        SplitSettings(validation_share=0.5, policy_share=0.5)
    with pytest.raises(SettingError, match="policy_share is 1"):
        SplitSettings(policy_share=1.0)
