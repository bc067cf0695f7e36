"""What every test starts from."""

import sys

# jsonschema, which nbformat imports, would build 38 grammars of addresses: most of a second's work for a
# format that no notebook uses.
sys.modules.setdefault("rfc3987_syntax", None)
