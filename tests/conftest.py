"""What holds for all tests: no property fails because the machine was slow, CI tries the same
examples of a property each time, and programs under test can be interrupted."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile(
    "moldau", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "moldau"))

# A shell that runs the tests in the background makes them, and what they start, ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
