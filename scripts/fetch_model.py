"""Fetch a published model: from the mirror if it is there, else from the hub; every file is hashed either way."""

from pathlib import Path

from acpo.cli import parser, run
from acpo.config import load_study
from acpo.data.model_files import MANIFEST, fetch_model
from acpo.errors import ConfigError, nearest
from acpo.sections import HubModel


def main() -> None:
    """Read arguments, fetch, verify."""
    arguments = parser(__doc__)
    arguments.add_argument("--model", required=True, help="its name under `models` in the study")
    arguments.add_argument("--output", type=Path, required=True, help="the directory to fetch it to")
    arguments.add_argument("--mirror", type=Path, help="directory with models/<name>/")
    given = arguments.parse_args()
    models = {name: model for name, model in load_study(given.config).models.items() if isinstance(model, HubModel)}
    if given.model not in models:
        raise ConfigError(f"--model: no published model {given.model!r}; {nearest(given.model, models)}")
    manifest = fetch_model(given.model, models[given.model], given.output, given.mirror)
    print(f"{given.output / MANIFEST}: {len(manifest.sha256)} files of {manifest.repository} at {manifest.commit}")


if __name__ == "__main__":
    run(main)
