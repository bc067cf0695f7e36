"""Public in, better public out: nothing here can hold private data, so nothing here costs anything."""

from workbench.inference.consistent import consistent as consistent
from workbench.inference.refilter import refilter as refilter
