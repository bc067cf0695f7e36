"""A plugin of pytest: one module of the package is executed from another text than its file's."""

import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

MODULE = "PLANTED_MODULE"  # its name
TEXT = "PLANTED_TEXT"  # the file of its text


class _Loader(SourceFileLoader):
    def get_code(self, fullname):
        return self.source_to_code(Path(os.environ[TEXT]).read_bytes(), self.path)


class _Finder(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname != os.environ.get(MODULE):
            return None
        spec = super().find_spec(fullname, path, target)
        spec.loader = _Loader(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
