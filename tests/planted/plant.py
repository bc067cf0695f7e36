"""One module of the package is executed from another text than its file's."""

import sys
from importlib.machinery import PathFinder, SourceFileLoader


def use(module, text):
    """From now on `module`, which nobody has imported yet, is `text`."""

    class Loader(SourceFileLoader):
        def get_code(self, fullname):
            return self.source_to_code(text.encode(), self.path)

    class Finder(PathFinder):
        @classmethod
        def find_spec(cls, fullname, path=None, target=None):
            if fullname != module:
                return None
            spec = super().find_spec(fullname, path, target)
            spec.loader = Loader(fullname, spec.origin)
            return spec

    assert module not in sys.modules
    sys.meta_path.insert(0, Finder)
