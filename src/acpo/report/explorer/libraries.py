"""The two JavaScript libraries of the page, from the pinned Python packages that ship them: Plotly and DataTables."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from plotly.offline import get_plotlyjs

from acpo.report.explorer.packing import pack, script_source
from acpo.store import StoreError

EXPORTS = re.compile(r"export\s*\{([^{}]*)\};?")


@dataclass(frozen=True)
class Library:
    """A script: the name of its data block, and its text."""

    name: str
    code: str

    @property
    def packed(self) -> str:
        """Its text as the page holds it."""
        return pack(self.code)

    @property
    def source(self) -> str:
        """What the content security policy calls it."""
        return script_source(self.code)


@cache
def libraries() -> tuple[Library, ...]:
    """Return the libraries in the order in which the page starts them.

    Raises:
        StoreError: itables ships another bundle than the pinned version does.
    """
    return (Library("datatables", _datatables()), Library("plotly", get_plotlyjs()))


def _datatables() -> str:
    """Return DataTables as itables bundles it: a module made a function, its export a global, to run without a file."""
    code = (files("itables") / "html" / "dt_bundle.js").read_text(encoding="utf-8")
    exports = EXPORTS.search(code)
    default = re.search(r"([\w$]+) as default\b", exports[1]) if exports else None
    if exports is None or default is None:
        raise StoreError(
            "itables: its DataTables bundle exports no default: install the version that pyproject.toml pins"
        )
    made = f"globalThis.DataTable={default[1]};"
    return f'(()=>{{"use strict";{code[: exports.start()]}{made}{code[exports.end() :]}}})();'
