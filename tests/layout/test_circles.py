from itertools import pairwise
from pathlib import Path

import pytest
from layout.circles import circle_of, imports_of, modules_of


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a import thing", {"a"}),
        ("def f():\n    from a.b import thing", {"a.b"}),
        ("if TYPE_CHECKING:\n    from a.b import Type", {"a.b"}),
        ("import os", set()),
    ],
)
def test_imports_for_types_and_in_functions_count(text: str, imported: set[str]) -> None:
    assert imports_of(text, ["a", "a.b"]) == imported


def test_a_circle_is_named_in_the_order_of_its_imports() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str]()}
    circle = circle_of(imports)
    assert circle[0] == circle[-1]
    assert {(one, other) for one, other in pairwise(circle)} == {
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
    }
    assert circle_of(imports | {"c": {"d"}}) == []


def test_a_package_is_the_module_of_its_folder(tmp_path: Path) -> None:
    for name in ("__init__", "part"):
        file = tmp_path / "member" / "src" / "package" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert set(modules_of(tmp_path)) == {"package", "package.part"}
