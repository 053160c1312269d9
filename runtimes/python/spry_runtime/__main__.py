"""Starts the runtime: `python3 /usr/src/app/spry_runtime/__main__.py`.

Naming the directory works too, but makes Python import runpy, for some milliseconds more.
"""

import _signal as signal
import os
import sys

if os.getpid() == 1:
    # The first process of a container does not hear signals that it has no handler for (pid_namespaces(7)): a Pod that is
    # deleted while it starts would stay for all of its grace period. The supervisor sets its own.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))

# Python puts this file's directory on the path, where our module names would shadow the
# user's. The package is found through its parent instead, and only while it is being imported.
_package = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = os.path.dirname(_package)
from spry_runtime.supervisor import main  # noqa: E402

del sys.path[0]
sys.exit(main(_package))
