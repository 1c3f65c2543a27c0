"""What holds for all tests: no property fails because the machine was slow."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("moldau", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "moldau"))
