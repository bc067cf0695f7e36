"""How papermill runs a notebook of a batch: as ever, but saving what is there only now and then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

ENGINE = "workbench"
_EVERY = timedelta(seconds=10)


class _Engine(NBClientEngine):
    """Papermill saves before and after each cell, which takes longer than most cells of ours."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **kwargs: Any
    ) -> Any:
        save = nb_man.save

        def save_now_and_then() -> None:
            if nb_man.now() - nb_man.last_save_time > _EVERY:
                save()

        nb_man.save = save_now_and_then
        try:
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)
        finally:
            nb_man.save = save  # as the engine does at the end, however that comes


papermill_engines.register(ENGINE, _Engine)
