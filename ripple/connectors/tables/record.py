"""What a commit of a table says of its output."""

from __future__ import annotations

import json
from typing import NamedTuple

from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import Owner, from_json, to_json


class Record(NamedTuple):
    """The content of one of our commits. number: of them, from 1 on. epoch: of the part's owner."""

    number: int
    owner: Owner
    epoch: int
    commit: Commit | None

    def to_json(self) -> str:
        """Return the text that is committed."""
        fields = {
            "number": self.number,
            "pipeline": self.owner.pipeline,
            "output": self.owner.output,
            "epoch": self.epoch,
            "reached": to_json(self.commit),
        }
        return json.dumps(fields, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read it again. Raises ValueError, KeyError and TypeError."""
        fields = json.loads(text)
        owner = Owner(fields["pipeline"], fields["output"])
        return cls(fields["number"], owner, fields["epoch"], from_json(fields["reached"]))
