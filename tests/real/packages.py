"""Released packages to test against: fetched by name, version and hash, unpacked once, kept in a cache."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "ANGELSLIM_0_5_0",
    "DFLASH",
    "EAGLE",
    "LMDEPLOY_0_14_0",
    "MODELOPT",
    "MODELOPT_0_47_0",
    "PROFILED",
    "SGLANG_0_5_9",
    "SGLANG_0_5_12",
    "SGLANG_0_5_23",
    "SPECFORGE_0_2_0",
    "SPECULATORS_0_3_0",
    "SPECULATORS_0_4_0",
    "SPECULATORS_0_5_0",
    "SPECULATORS_0_9_0",
    "TORCHSPEC",
    "TRANSFORMERS_5_24_0",
    "VLLM_0_13_0",
    "VLLM_0_19_1",
    "VLLM_0_22_1",
    "VLLM_0_33_0",
    "Checkout",
    "Package",
    "checkout_directory",
    "package_directory",
]


@dataclass(frozen=True, slots=True)
class Package:
    """One wheel of a release, named by the hash of its bytes. ``module`` is its package where that has another name."""

    name: str
    version: str
    sha256: str
    module: str = ""

    @property
    def directory(self) -> str:
        """The hash is part of the name, so a changed pin never meets an old tree."""
        return f"{self.name}-{self.version}-{self.sha256[:12]}"


@dataclass(frozen=True, slots=True)
class Checkout:
    """One commit of a repository that is not released as a package."""

    repository: str
    commit: str

    @property
    def directory(self) -> str:
        return f"{self.repository.rpartition('/')[2].lower()}-{self.commit[:12]}"


SGLANG_0_5_9 = Package("sglang", "0.5.9", "8a936c4d25fea605f44254e533cff2144c73ceffbc1f8738aba393461bbb64d1")
SGLANG_0_5_12 = Package("sglang", "0.5.12", "4ed786a38655851fd055ef57380c34d29b87753b53f63457309f51e5bf48c2e6")
SGLANG_0_5_23 = Package("sglang", "0.5.23", "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937")
LMDEPLOY_0_14_0 = Package("lmdeploy", "0.14.0", "4983231306733c7a6928eab0229c8c3898e0c28f9614a5955b3b82766bd71b30")
SPECFORGE_0_2_0 = Package("specforge", "0.2.0", "fbc79517adf483c6a8beea52561b1a8c8c8a99a54c820b47d2033a73966b55b0")
SPECULATORS_0_3_0 = Package("speculators", "0.3.0", "10e67b28fd7a09b3f2a0c522ac0ec5d9f459c4021f7bf7e6b32413e551995f73")
SPECULATORS_0_4_0 = Package("speculators", "0.4.0", "dd1ee839c9966b8ff85911f60d2155746d4a3f61c7f76e9dce76466409e32861")
SPECULATORS_0_5_0 = Package("speculators", "0.5.0", "24c1876ca7448b12b8d3be4c31cd736584d2248795024dd98e61570d02215c1d")
SPECULATORS_0_9_0 = Package("speculators", "0.9.0", "f0de7571274ce996d769ce81240379728dcb38701f77d2d34cfd0d670d1b4481")
MODELOPT_0_47_0 = Package(
    "nvidia-modelopt", "0.47.0", "db13e62d7efe4a1512e8b8c3f479e28d64022306f94a194f13234e7dca1d3120", "modelopt"
)
ANGELSLIM_0_5_0 = Package("angelslim", "0.5.0", "66a6ec607419c9eac99c38c8117742fb322b740042875fb5c3950a9a9ed94bc6")
TORCHSPEC = Checkout("torchspec-project/TorchSpec", "6dda2bfc7b181158697245eee3f17d0e9c766750")
EAGLE = Checkout("SafeAILab/EAGLE", "cb7e0841fe0c206c6ed74a197ad5e2a1f13f5a2b")
MODELOPT = Checkout("NVIDIA/Model-Optimizer", "a2fbac7bad8ab446d3f8783dadb0c3366eb0ad73")
DFLASH = Checkout("z-lab/dflash", "44947fbf71114e241c96de194f4b382b5dd330d0")
VLLM_0_19_1 = Package("vllm", "0.19.1", "71a87f46cafab4489c69a5c5c83b870d0235e5694d8222303d460576293dc719")
VLLM_0_22_1 = Package("vllm", "0.22.1", "cc50536c93827a577b2bc45f038b8b866c31ed220631008521a337c9b2558f4d")
VLLM_0_33_0 = Package("vllm", "0.33.0", "4b6bdec4ab269990bf70d45a3c1e94c3760a27064513760193b26d6f0da883aa")

# The releases whose profiles are bundled (tools/learn_profiles.py); the tests read only those that are named above.
TRANSFORMERS_5_24_0 = Package(
    "transformers", "5.24.0", "ff5ebedf9359f94bb63772b6380eba6e7104d010cbbb2cb82c788817ea7486f6"
)
VLLM_0_13_0 = Package("vllm", "0.13.0", "12b3d0a3b91c32a0091349de64b464f1c3d499a5b3a5d0ec387fef94ed5df6ee")
PROFILED = (
    Package("sglang", "0.5.5", "3c57f135ec0a7a5cf6ae4ed5e0b231d7bf7e0fae588bbc1a881560f1c18db995"),
    SGLANG_0_5_9,
    SGLANG_0_5_23,
    VLLM_0_13_0,
    VLLM_0_22_1,
    VLLM_0_33_0,
    TRANSFORMERS_5_24_0,
)

# The wheels are for one interpreter and platform, but only their sources are read, on any.
_WHEEL_OF = (
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
    "--abi=abi3",
    "--abi=none",
    "--platform=manylinux_2_34_x86_64",
    "--platform=manylinux_2_31_x86_64",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux2014_x86_64",
    "--platform=any",
)


def package_directory(package: Package) -> Path:
    """The directory of the unpacked sources, ``.../sglang``; downloads what is not in the cache.

    Raises:
        RuntimeError: The release cannot be had, or is not the one that was pinned.
    """
    cache = Path(os.environ.get("EAGLELINT_TEST_CACHE") or Path.home() / ".cache" / "eaglelint-tests")
    cache.mkdir(parents=True, exist_ok=True)
    tree = cache / package.directory
    # A whole tree appears by one rename; the lock only keeps workers from downloading the same wheel side by side.
    with _locked(cache / f"{package.directory}.lock"):
        if not tree.is_dir():
            with tempfile.TemporaryDirectory(dir=cache, prefix="unpacking-") as name:
                unpacked = Path(name) / "tree"
                _unpack(_download(package, Path(name)), unpacked)
                unpacked.rename(tree)
    return tree / (package.module or package.name)


def checkout_directory(checkout: Checkout) -> Path | None:
    """The directory of the unpacked sources; None where it is not in the cache and cannot be had."""
    cache = Path(os.environ.get("EAGLELINT_TEST_CACHE") or Path.home() / ".cache" / "eaglelint-tests")
    cache.mkdir(parents=True, exist_ok=True)
    tree = cache / checkout.directory
    with _locked(cache / f"{checkout.directory}.lock"):
        if not tree.is_dir():
            url = f"https://codeload.github.com/{checkout.repository}/tar.gz/{checkout.commit}"
            with tempfile.TemporaryDirectory(dir=cache, prefix="unpacking-") as name:
                try:
                    with urllib.request.urlopen(url, timeout=60) as answer:
                        data = answer.read()
                except OSError:
                    return None
                with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                    for member in archive.getmembers():
                        if member.isfile() and member.name.endswith((".py", "pyproject.toml")):
                            member.name = member.name.partition("/")[2]
                            archive.extract(member, Path(name) / "tree", filter="data")
                (Path(name) / "tree").rename(tree)
    return tree


def _download(package: Package, directory: Path) -> Path:
    """The wheel in ``directory``, its hash checked."""
    requirement = f"{package.name}=={package.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["--no-deps", "--only-binary=:all:", *_WHEEL_OF, "--dest", str(directory), requirement]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{requirement} could not be downloaded:\n{run.stderr}")
    (wheel,) = directory.glob("*.whl")
    with wheel.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != package.sha256:
        raise RuntimeError(f"{wheel.name} has the hash {digest.hexdigest()}, pinned is {package.sha256}.")
    return wheel


def _unpack(wheel: Path, directory: Path) -> None:
    """Writes the Python sources and the metadata, and removes the wheel: it may be hundreds of megabytes."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith((".py", ".dist-info/METADATA")):
                archive.extract(name, directory)
    wheel.unlink()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
