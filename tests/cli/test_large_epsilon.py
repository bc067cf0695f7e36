"""Above ε = 10 per unit a command asks whether it is meant, and says what it means."""

from pathlib import Path

import pytest

STATED = "--domain domain.json --bound 1,1 --unit 'a trip' --out out.parquet"
COUNTS = f"release t.csv --mechanism GeometricHistogram {STATED}"
LINES = {
    "epsilon": f"{COUNTS} --epsilon 10.5",
    "a huge one": f"{COUNTS} --epsilon 1e300",
    "rho": f"release t.csv --mechanism GaussianHistogram {STATED} --rho 1.6",
    "what is released beside it": "release t.csv --mechanism GeometricHistogram --user n --bound 1,1 "
    "--domain domain.json --out out.parquet --epsilon 9 --report-cut 1.5",
    "synthesis": f"synthesize t.csv {STATED} --rows 5 --marginals 1 --epsilon 10.5",
    "a budget": "budget new out.parquet --people us --unit 'a trip' --epsilon 10.5",
    "a budget of rho": "budget new out.parquet --people us --unit 'a trip' --rho 1.6",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_more_than_ten_has_to_be_meant(run, line, recwarn):
    said = run(line, code=2)
    assert "at ε = 10 is 22,026" in said and "--epsilon-is-meant" in said
    assert not Path("out.parquet").exists()
    run(f"{line} --epsilon-is-meant")
    assert Path("out.parquet").exists()
    assert not [w for w in recwarn if "22,026" in str(w.message)]


@pytest.mark.parametrize("price", ["--epsilon 10", "--epsilon 50 --seed 1 --simulated"])
def test_ten_and_simulated_noise_need_no_word(run, price):
    run(f"{COUNTS} {price}")
