"""`python -m moldau.cli`, which the scripts in bin/ call."""

from __future__ import annotations

import sys

from moldau.cli.main import main

sys.exit(main())
