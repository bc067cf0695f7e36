"""Publications: folders that present a release to the public. A publication contains the table, a data sheet
that answers readers' questions, a short statement on privacy, and metadata for programs.
"""

from workbench.owner.publication.about import About as About
from workbench.owner.publication.about import Earlier as Earlier
from workbench.owner.publication.about import Recipe as Recipe
from workbench.owner.publication.about import is_unrecorded as is_unrecorded
from workbench.owner.publication.about import read_about as read_about
from workbench.owner.publication.about import record_edition as record_edition
from workbench.owner.publication.about import refuse_other_person as refuse_other_person
from workbench.owner.publication.folder import alone_in as alone_in
from workbench.owner.publication.folder import publish as publish
from workbench.owner.publication.folder import refuse_folder as refuse_folder
