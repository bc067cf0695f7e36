"""Publications: folders that present a release to the public, with a data sheet, a statement and metadata."""

from workbench.owner.publication.about import About as About
from workbench.owner.publication.about import Earlier as Earlier
from workbench.owner.publication.about import Recipe as Recipe
from workbench.owner.publication.about import read_about as read_about
from workbench.owner.publication.about import record_edition as record_edition
from workbench.owner.publication.folder import alone_in as alone_in
from workbench.owner.publication.folder import publish as publish
from workbench.owner.publication.folder import refuse_folder as refuse_folder
