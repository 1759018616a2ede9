"""Record what this version promises to keep: ``python tests/stability/remake.py``.

Before a version is released the records are made anew; after it, they stay, and what they hold has to work.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from isopleth import save
from isopleth.tables.rules import rules_to_json
from stability import promises, saved_models

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    kept = {"names": promises.names(), "options": promises.options(), "json": promises.json_keys()}
    (promises.FOLDER / "kept.json").write_text(json.dumps(kept, indent=1) + "\n")
    rules = saved_models.with_rules()
    (promises.FOLDER / "rules.json").write_text(rules_to_json(rules))
    found = {}
    for name, make in saved_models.MODELS.items():
        model = make()
        with tempfile.TemporaryDirectory() as folder:
            save(model, Path(folder) / "model")
            content = (Path(folder) / "model").read_bytes()
        (promises.FOLDER / "models" / f"{name}.isopleth.xz").write_bytes(lzma.compress(content))
        found[name] = saved_models.answers(name, model)
    (promises.FOLDER / "answers_of_models.json").write_text(json.dumps(found, indent=1) + "\n")
