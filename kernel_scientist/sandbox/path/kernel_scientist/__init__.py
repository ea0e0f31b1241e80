"""This package as confined processes find it: in a folder that holds nothing else, and that they may therefore list.

The folder around the real one may be a laboratory, which they cannot list, so that Python finds no package there.
This module replaces itself by the real package.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_package = Path(__file__).resolve().parents[3]
_spec = spec_from_file_location(__name__, _package / "__init__.py", submodule_search_locations=[str(_package)])
assert _spec is not None and _spec.loader is not None
sys.modules[__name__] = module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[__name__])
