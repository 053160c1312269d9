"""Runs a module of tests in the current directory as `python3 -m` does, with the directory's own modules where the Function has them:
`python3 -P run_module.py unittest test_handler.py`."""

import os
import runpy
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from spry_runtime.own_modules import prefer_standard_library  # noqa: E402
from spry_runtime.stand_ins import FunctionFinder  # noqa: E402

del sys.path[0]
sys.meta_path.append(FunctionFinder(os.getcwd()))
prefer_standard_library(os.getcwd())
sys.path.insert(0, os.getcwd())
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
