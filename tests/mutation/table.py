"""The table of what was tried: a CSV file beside the tests, and a page of the documentation."""

import csv
import tomllib
from collections import Counter
from pathlib import Path

from tests.planted.planting import ROOT

TABLE = Path(__file__).with_name("tried.csv")
PAGE = ROOT / "docs" / "mutation.inc"


def read_rows():
    """All that was tried."""
    with open(TABLE, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def equivalent():
    """Why no test can see a change, by its name."""
    text = Path(__file__).with_name("equivalent.toml").read_text(encoding="utf-8")
    return {change["name"]: change["why"] for change in tomllib.loads(text)["change"]}


def write_page(names):
    """Rows of these changes, in Markdown; what survives without a reason is returned."""
    tried = [row for row in read_rows() if row["change"] in names]
    reasons = equivalent()
    survived = [row["change"] for row in tried if not row["killed by"]]
    unexplained = [name for name in survived if name not in reasons]
    kinds = Counter(row["kind"] for row in tried)
    lines = [
        f"{len(tried)} changes ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())}): "
        f"a test fails for {len(tried) - len(survived)}, and {len(survived)} survive. For "
        f"{len(survived) - len(unexplained)} of these, the table says why no test can fail.\n\n",
        "| change | kind | test that fails, or why none can |\n| --- | --- | --- |\n",
    ]
    for row in sorted(tried, key=lambda row: (row["killed by"] != "", row["change"])):
        seen = f"`{row['killed by']}`" if row["killed by"] else ""
        why = seen or reasons.get(row["change"], "unread")
        lines.append(f"| `{_cell(row['change'])}` | {row['kind']} | {_cell(why)} |\n")
    PAGE.write_text("".join(lines), encoding="utf-8")
    return unexplained


def _cell(text):
    return " ".join(text.split()).replace("|", "\\|")
