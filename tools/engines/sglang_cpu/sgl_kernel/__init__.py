"""Stands in for SGLang's package of GPU kernels: every name can be imported, and calling one says which."""

import importlib.abc
import importlib.machinery
import sys
import types

__version__ = "0.4.10"
__path__ = []


def _names(module):
    def find(name):
        if name.startswith("__"):
            raise AttributeError(name)

        def kernel(*arguments, **named):
            raise NotImplementedError(f"{module}.{name} is a kernel for GPUs, and this is a CPU")

        return kernel

    return find


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of the package, which have every name too."""

    def find_spec(self, name, path, target=None):
        # Without this one SGLang takes types of its own.
        if name.startswith(f"{__name__}.") and name != f"{__name__}.scalar_type":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = _names(spec.name)
        return module

    def exec_module(self, module):
        pass


__getattr__ = _names(__name__)
sys.meta_path.insert(0, _Finder())
