"""The server inside every Python Function's image. Standard library only, Python 3.11 and newer.

Start-up time is part of the contract, so modules that are slow to import (typing, dataclasses, asyncio,
json, traceback) are imported where they are used, and annotations are never evaluated.
"""
