"""Public in, better public out: nothing here can hold private data, so nothing here costs anything."""

from workbench.inference.consistent import consistent as consistent
from workbench.inference.isotonic import isotonic as isotonic
from workbench.inference.isotonic import rounded as rounded
from workbench.inference.refilter import refilter as refilter
from workbench.inference.tree import NonnegativeLeastSquares as NonnegativeLeastSquares
from workbench.inference.tree import Zeroed as Zeroed
from workbench.inference.tree import nonnegative as nonnegative
from workbench.inference.tree import nonnegative_least_squares as nonnegative_least_squares
from workbench.inference.tree import tree as tree
