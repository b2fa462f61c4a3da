"""Builds the requested targets with one cargo, then runs the test binaries and sends their results as records."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from jumar.child import runner_bridge
from jumar.child.cargo import compile_errors
from jumar.child.cargo.build_cache import BuildCache
from jumar.child.cargo.test_binary import LibtestBinary
from jumar.child.commands import toolchain_main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Record = list[object]
    Send = Callable[[Record], None]

UNBUILDABLE = ("linker `", "rustup could not choose", "is not installed", "could not execute process `rustc")
"""Messages of cargo or rustc about an incomplete toolchain."""


def is_root(path: str) -> bool:
    """Return whether cargo makes the file *path* a target of its own, by its place alone."""
    folder, _, file = path.rpartition("/")
    parts = folder.split("/")
    if "src" not in parts:
        return parts[-1] == "tests" or (parts[-2:-1] == ["tests"] and file == "main.rs")
    inner = parts[parts.index("src") + 1 :]
    return (not inner and file in ("lib.rs", "main.rs")) or (
        inner[:1] == ["bin"] and (len(inner) == 1 or file == "main.rs")
    )


def run_job(config: dict[str, Any], send: Send) -> int:
    """Collect or run, as the config says."""
    cargo = shutil.which("cargo")
    if cargo is None:
        send(["unusable", f"there is no cargo on the PATH of the sandbox: {os.environ.get('PATH')}"])
        return 3
    send(["hello", {"cargo": cargo}])
    store = os.environ.pop("JUMAR_CARGO_SEEDS", "")
    os.environ["CARGO_TARGET_DIR"] = str(Path(os.environ["TMPDIR"], "target"))
    files = [path for path in config["files"] if Path(path).is_file()]
    grouped: dict[str, list[str]] = {}
    for path in files:
        grouped.setdefault(_find_workspace(path), []).append(path)
    for root, paths in grouped.items():
        if not root:
            send(["usage", f"no Cargo.toml stands in the folder of {paths[0]} or above it in the task"])
            return 3
        build = CargoBuild(cargo, root, paths)
        if why := build.run(BuildCache(store, root, os.environ["CARGO_TARGET_DIR"])):
            send(["usage", why])
            return 3
        (_list if config["mode"] == "collect" else _judge)(build, config, send)
    return 0


class CargoBuild:
    """One run of cargo, for the test files *paths* of the workspace in the folder *root*."""

    def __init__(self, cargo: str, root: str, paths: Sequence[str]) -> None:
        self._cargo, self._root, self.paths = cargo, root, paths
        self._owners = {path: _find_owner(path) for path in paths}
        self._manifests = {owner: _read_manifest(owner) for owner in self._owners.values()}
        self._messages: list[dict[str, Any]] = []
        self._built: set[str] = set()
        self._foreign: dict[str, list[str]] = {}
        """Folder of each package from elsewhere -> what was built of it."""
        self._own: set[str] = set()
        self.failed = False
        self._stderr = ""
        self.binaries: dict[str, tuple[str, str, dict[str, str]]] = {}
        """Root file of a target -> its test binary, the folder it is run in, and what cargo adds to its environment."""
        self._outs: dict[str, dict[str, str]] = {}
        self._programs: dict[str, str] = {}
        self.crates = {m.get("package", {}).get("name", "").replace("-", "_"): o for o, m in self._manifests.items()}

    def run(self, seed: Any) -> str:
        """Build, beginning with *seed*; why nothing can be built here, whatever the code, or empty."""
        seed.restore()
        status = self._run_cargo(["--keep-going"])
        packages = {_read_manifest(folder).get("package", {}).get("name", "") for folder in self._foreign}
        if not status and packages:
            seed.keep(packages - self._own, [file for files in self._foreign.values() for file in files])
        if status and not self._messages and "--keep-going" in self._stderr:
            status = self._run_cargo([])  # before 1.74 the first target that does not build hides the others
        self.failed = status != 0
        if not self.failed:
            return ""
        faults = [m["message"]["message"] for m in self._messages]
        lame = next((text for text in [*faults, self._stderr] if any(sign in text for sign in UNBUILDABLE)), "")
        lame = lame or toolchain_main.check_rust(self._cargo, self._messages)
        unread = not self._messages and not self._built and "could not compile" not in self._stderr
        return (
            runner_bridge.normalise_text(lame or self._stderr)
            if lame or (unread and "custom build" not in self._stderr)
            else ""
        )

    def report_broken(self, path: str) -> Record:
        """Report why the target with the root file *path* was not built."""
        messages = [m for m in self._messages if os.path.relpath(m["target"]["src_path"]) == path]
        messages = messages or [m for m in self._messages if "test" not in m["target"]["kind"]]
        said = "\n".join(m["message"].get("rendered") or m["message"]["message"] for m in messages)
        blame = compile_errors.attribute_errors(messages, self.crates, self._built)
        return ["broken", path, runner_bridge.normalise_text(said or self._stderr), *blame]

    def _run_cargo(self, options: Sequence[str]) -> int:
        argv = [
            self._cargo,
            "build",
            "--offline",
            "--profile=test",
            "--message-format=json",
            *options,
            *self._list_targets(),
        ]
        with tempfile.TemporaryFile() as stderr:
            status: int = runner_bridge.run_program(
                argv, self._hear, stderr=stderr.fileno(), cwd=self._root, kept=_get_rendered
            )  # fmt: skip
            stderr.seek(0)
            self._stderr = stderr.read().decode("utf-8", "replace")
        sys.stdout.write(self._stderr)
        return status

    def _list_targets(self) -> list[str]:
        """Return the options for the packages, and for single integration tests if nothing else is asked for."""
        packages = [m["package"]["name"] for m in self._manifests.values() if "name" in m.get("package", {})]
        options = [f"--package={name}" for name in packages]
        names = [
            _find_integration_test(path, self._owners[path], self._manifests[self._owners[path]]) for path in self.paths
        ]
        return [*options, *(f"--test={name}" for name in names)] if all(names) else [*options, "--tests"]

    def _hear(self, line: str) -> None:
        with contextlib.suppress(ValueError):
            said = json.loads(line) if line.startswith("{") else {}
            match said.get("reason"):
                case "compiler-message" if said["message"].get("level") == "error":
                    self._messages.append(said)
                case "build-script-executed":
                    self._outs[said["package_id"]] = {"OUT_DIR": said["out_dir"], **dict(said.get("env", ()))}
                case "compiler-artifact":
                    self._record_artifact(said)

    def _record_artifact(self, said: Mapping[str, Any]) -> None:
        target, executable = said["target"], said.get("executable")
        folder = str(Path(said["manifest_path"]).parent)
        if not said["package_id"].startswith("path+"):
            if os.path.relpath(folder).startswith(".."):  # what is vendored has another path in the next room
                self._foreign.setdefault(folder, []).extend(said["filenames"])
            return
        self._own.add(_read_manifest(folder).get("package", {}).get("name", ""))
        if not said["profile"]["test"]:
            self._built.add(target["src_path"])
            if executable:
                self._programs[f"CARGO_BIN_EXE_{target['name']}"] = executable
        elif executable:
            libraries = os.pathsep.join(str(p) for p in (Path(executable).parent, Path(executable).parent.parent))
            own = {
                "CARGO": self._cargo,
                "CARGO_MANIFEST_DIR": folder,
                "LD_LIBRARY_PATH": libraries,
                **_describe_package(said["manifest_path"]),
                **self._outs.get(said["package_id"], {}),
            }
            self.binaries[os.path.relpath(target["src_path"])] = (executable, folder, own)

    def build_environment(self, path: str) -> dict[str, str]:
        """Return the environment of the test binary of *path*, as cargo would set it."""
        return {**os.environ, **self._programs, **self.binaries[path][2]}


def _list(build: CargoBuild, config: Mapping[str, Any], send: Send) -> None:
    for path in build.paths:
        root = _find_root(path, build)
        if root in build.binaries:
            names = _get_binary(build, root, config).list_tests()
            chosen = [i for name in names if (i := f"{root}::{name}") and _is_selected(config["ids"], path, i)]
            runner_bridge.collect(send, chosen)
        elif build.failed and is_root(path):
            send(build.report_broken(path))


def _judge(build: CargoBuild, config: Mapping[str, Any], send: Send) -> None:
    for path in build.paths:
        names = [i.partition("::")[2] for i in config["ids"] if i.partition("::")[0] == path]
        if path in build.binaries:
            _get_binary(build, path, config).judge(names, runner_bridge.build_plain_sender(send))
        elif build.failed:
            send(build.report_broken(path))


def _get_binary(build: CargoBuild, path: str, config: Mapping[str, Any]) -> Any:
    executable, folder, _ = build.binaries[path]
    return LibtestBinary(executable, path, folder, build.build_environment(path), config["limit"])


def _find_root(path: str, build: CargoBuild) -> str:
    """Return the root file of the target that *path* is a module of: itself, or its crate's library or program."""
    if is_root(path):
        return path
    folder = path.rpartition("src/")[0]
    return next((r for r in (f"{folder}src/lib.rs", f"{folder}src/main.rs") if r in build.binaries), path)


def _is_selected(select: Iterable[str], path: str, test_id: str) -> bool:
    """Return whether *select* covers *test_id* of *path*: by its file, its module, or its id."""
    root, _, name = test_id.partition("::")
    named = [s for s in select if s.partition("::")[0] == path and "::" in s]
    if named and path not in select:
        return any(test_id == s or test_id.startswith(f"{s}::") for s in named)
    if path == root:
        return True
    module = path.rpartition("src/")[2].removesuffix(".rs").removesuffix("/mod").replace("/", "::")
    return name.startswith(f"{module}::")


def _find_integration_test(path: str, owner: str, manifest: Mapping[str, Any]) -> str:
    """Return the name of the integration test whose root *path* is, or empty: then all targets are built."""
    inner = PurePosixPath(os.path.relpath(path, owner))
    if "test" in manifest or not manifest.get("package", {}).get("autotests", True) or inner.parts[0] != "tests":
        return ""
    return inner.stem if len(inner.parts) == 2 else inner.parts[1] if inner.parts[2:] == ("main.rs",) else ""  # noqa: PLR2004  # tests/NAME.rs


def _find_owner(path: str) -> str:
    """Return the folder of the nearest Cargo.toml above *path*, or empty."""
    return next((str(up) for up in Path(path).parents if Path(up, "Cargo.toml").is_file()), "")


def _find_workspace(path: str) -> str:
    """Return the folder of the highest Cargo.toml above *path* that is a workspace, or else of its package."""
    above = [str(up) for up in Path(path).parents if "workspace" in _read_manifest(str(up))]
    return above[-1] if above else _find_owner(path)


def _read_manifest(folder: str) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        return tomllib.loads(Path(folder, "Cargo.toml").read_text("utf-8"))
    return {}


def _describe_package(manifest_path: str) -> dict[str, str]:
    """Return the variables with which cargo describes a package to its tests."""
    package = _read_manifest(str(Path(manifest_path).parent)).get("package", {})
    return {
        f"CARGO_PKG_{key.upper()}": package[key] for key in ("name", "version") if isinstance(package.get(key), str)
    }


def _get_rendered(line: str) -> str:
    """Return the part of a line of cargo's output that is for people."""
    with contextlib.suppress(ValueError):
        said = json.loads(line) if line.startswith("{") else {}
        return str(said["message"].get("rendered", "")) if said.get("reason") == "compiler-message" else ""
    return line


def main() -> None:
    """Run the cargo tests that one order on standard input asks for."""
    runner_bridge.serve(run_job)
