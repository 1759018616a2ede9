"""Write the recorded answers anew: ``python tests/answers/remake.py [words of the names of cases]``."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from answers import recorded
from answers.cases import CASES

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    known = recorded.read() if recorded.FILE.exists() else {}
    answers = {}
    for name, find in CASES.items():
        if " ".join(sys.argv[1:]) in name or name not in known:
            begin = time.process_time()
            answers[name] = dict(recorded.flat(find()))
            print(f"{time.process_time() - begin:6.2f} s, {len(answers[name]):4} answers: {name}", flush=True)
        else:
            answers[name] = known[name]
    recorded.write(answers)
