"""Where a mistake stands in the package, and the package with it planted."""

import ast
from copy import deepcopy
from functools import cache
from pathlib import Path

from tests.planted import rewrite

ROOT = Path(__file__).parents[2]


@cache
def package(where):
    """The files of the package of `where`, parsed, by their paths in the package; nobody changes them."""
    top = ROOT / "workbench" / where.partition(".")[0]
    paths = sorted(top.rglob("*.py")) if top.is_dir() else [top.with_suffix(".py")]
    return {
        path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths
    }


def plant_in(mistake, trees):
    """The file in which the mistake can stand, and a copy of its tree where it does."""
    old, new = rewrite.parse_pair(mistake.old, mistake.new)
    name = mistake.where.partition(".")[2]

    def places_in(tree):
        parts = (
            [part for part in tree.body if getattr(part, "name", "") == name]
            if name
            else [tree]
        )
        return [place for part in parts for place in rewrite.places(part, old)]

    spots = [(path, place) for path, tree in trees.items() for place in places_in(tree)]
    assert len(spots) == 1, (
        f"tests/planted: {mistake.name!r} can be planted at {len(spots)} places in "
        f"{mistake.where}, not at one: {[f'{path}:{place.line}' for path, place in spots]}; "
        f"the code has changed, so change the pattern of this mistake:\n{mistake.old}"
    )
    ((path, place),) = spots
    tree, place = deepcopy((trees[path], place))
    rewrite.replace(place, new)
    return path, tree
