"""What every mechanism must obey, ours or yours, as checks that anybody can run.

`workbench laws my_module:MyMechanism` runs them all on the class's `example`; the tests run them on ours.
"""

from workbench.laws.run import LAWS, Outcome, check_laws
from workbench.laws.subject import DOMAIN, Broken, Subject

__all__ = ["DOMAIN", "LAWS", "Broken", "Outcome", "Subject", "check_laws"]
