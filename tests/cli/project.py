"""A project folder with its config file, a home with the user's, and the command run in it."""

from __future__ import annotations

from pathlib import Path

from segue.emulator import Emulator
from tests.cli.process import ProcessResult, run, run_new

KEY = "sk-test-0123456789"


class Project:
    """The config files of a project and its user; each command runs in the project folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.folder = folder / "project"
        self.home.mkdir()
        self.folder.mkdir()
        self.store = folder / "history.db"

    @property
    def file(self) -> Path:
        return self.folder / ".segue.toml"

    @property
    def variables(self) -> dict[str, str]:
        return {"HOME": str(self.home), "SEGUE_STORE": str(self.store), "TEST_KEY": KEY}

    def write_config(self, text: str) -> None:
        self.file.write_text(text)

    def write_user_config(self, text: str) -> None:
        place = self.home / ".config" / "segue" / "config.toml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def run(self, *arguments: str, stdin: bytes = b"", **variables: str) -> ProcessResult:
        return run(*arguments, stdin=stdin, **{**self.variables, **variables})

    def run_new(self, *arguments: str, stdin: bytes = b"", **variables: str) -> ProcessResult:
        return run_new(*arguments, stdin=stdin, **{**self.variables, **variables})

    def configure_providers(self, **emulators: Emulator) -> None:
        """Points these providers at emulators with the key in `TEST_KEY`."""
        tables = (
            f'[providers.{name.replace("_", "-")}]\nbase_url = "{emulator.base_url}"\nkey_variable = "TEST_KEY"\n'
            for name, emulator in emulators.items()
        )
        self.write_user_config("\n".join(tables))
