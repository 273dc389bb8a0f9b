"""`make sdks`: judge segue by every type of the vendors' newest SDKs.

Each sample is a body or a reply that the SDK's types allow. Differences and exit code are those of `make recorded`.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version

from tests.recorded.__main__ import run
from tests.sdks.samples import samples

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make sdks", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of samples, such as google.Part")
    options = parser.parse_args()
    sdks = ("openai", "anthropic", "google-genai", "mistralai", "botocore")
    print(", ".join(f"{name} {version(name)}" for name in sdks), flush=True)
    sys.exit(run(sample for sample in samples() if options.only in sample.name))
