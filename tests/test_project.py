"""The project's own files agree with each other: versions, pins, commands."""

import os
import re
import subprocess
import tomllib
from importlib import metadata, resources
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINS = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]


def _name(requirement: str) -> str:
    """A requirement's bare name, spelled as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def test_the_installed_version_is_the_one_in_pyproject():
    assert metadata.version("segue") == PROJECT["version"]


def test_types_are_shipped():
    assert resources.files("segue").joinpath("py.typed").is_file()


def test_pins_are_exact_versions_and_nothing_else():
    assert [line for line in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line)] == []


def test_every_direct_dependency_is_pinned():
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(requirement for extra in extras for requirement in extra)]
    assert {_name(requirement) for requirement in wanted} <= {_name(line) for line in PINS}


def test_every_installed_dependency_has_its_pinned_version():
    pinned = {_name(line): line.split("==")[1] for line in PINS}
    installed = {_name(found.name): found.version for found in metadata.distributions()}
    assert {name: installed[name] for name in pinned.keys() & installed.keys()} == {
        name: pinned[name] for name in pinned.keys() & installed.keys()
    }


def test_every_make_target_explains_itself():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    explained = re.findall(r"^([a-z]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(phony[1].split()) == sorted(explained)


def _quick_paths() -> list[str]:
    """The paths in `QUICK` as make expands them."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", "--print-data-base", "--just-print", "help"]
    database = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout
    quick = re.search(r"^QUICK := (.*)$", database, re.MULTILINE)
    assert quick
    return quick[1].split()


def test_every_path_of_make_quick_exists():
    paths = [path.split("::") for path in _quick_paths()]
    assert len(paths) > 10
    assert [path for path, *_ in paths if not (ROOT / path).exists()] == []
    functions = [(path, names[0]) for path, *names in paths if names]
    assert functions
    assert [name for path, name in functions if f"\ndef {name}(" not in (ROOT / path).read_text("utf-8")] == []


def test_make_docs_runs_every_generator():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    generators = {file.stem for file in (ROOT / "scripts").glob("generate_*.py")}
    assert set(re.findall(r"python -m scripts\.(generate_\w+)", makefile)) == generators


def test_no_import_cycle():
    """Imports inside functions count; those that only type checkers read do not."""
    graph = grimp.build_graph("segue", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while leaves := {module for module, imported in imports.items() if not imported & imports.keys()}:
        imports = {module: imported for module, imported in imports.items() if module not in leaves}
    while tops := imports.keys() - set().union(*imports.values()):
        imports = {module: imported for module, imported in imports.items() if module not in tops}
    assert sorted(imports) == []
