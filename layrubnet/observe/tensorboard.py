"""TensorBoard events: training loss and rate, and what the tests measured."""

from __future__ import annotations

import os

from layrubnet import extras
from layrubnet.errors import LayrubError
from layrubnet.observe.observer import Observer, TestReport, TrainReport


class TensorBoard(Observer):
    """Writes scalars ``train/loss``, ``train/lr`` and ``test<net>/<output>`` into a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self._writer = extras.tensorboard_writer(os.fspath(folder))
        except OSError as error:
            raise LayrubError(f"cannot be written: {error.strerror}", where=str(folder)) from None

    def trained(self, report: TrainReport) -> None:
        self._writer.add_scalar("train/loss", report.loss, report.iteration)
        self._writer.add_scalar("train/lr", report.lr, report.iteration)
        self._writer.flush()

    def tested(self, report: TestReport) -> None:
        for output in report.outputs:
            tag = f"test{report.net}/{output.name}"
            self._writer.add_scalar(tag, output.value, report.iteration)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
