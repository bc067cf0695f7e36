"""Places are drawn by name, and a change is a change; `make mutation` makes them."""

import ast

from tests.mutation import __main__ as trial
from tests.mutation import places
from tests.mutation.table import equivalent, read_rows
from tests.planted.planting import ROOT


def test_what_is_drawn_first_stays_and_is_other_code():
    few = places.drawn(19, 5)
    more = places.drawn(19, 40)
    assert [place.name for place in few] == [place.name for place in more[:5]]
    assert len({place.name for place in more}) == 40 and len({p.kind for p in more}) > 4
    for place in more[:10]:
        text = places.changed_text(place)
        compile(text, place.file, "exec")
        assert text != ast.unparse(ast.parse((ROOT / place.file).read_text(encoding="utf-8")))


def test_what_survives_is_explained():
    survived = {row["change"] for row in read_rows() if not row["killed by"]}
    assert len(read_rows()) == 200 and survived == set(equivalent())


def test_how_a_trial_ended_is_read():
    assert trial.killer(0, "") == ""
    assert trial.killer(1, "FAILED tests/a.py::b[1] - assert 0\n") == "a.py::b[1]"
    assert (trial.killer(1, "Timeout"), trial.killer(-11, "")) == ("no end", "signal 11")
