"""Which data folders a start takes, by the number in them."""

from pathlib import Path

import pytest

from config.data_format import FORMAT, explain_folder_refusal, read_folder_format


def test_a_folder_that_no_start_used_is_new(tmp_path: Path) -> None:
    (tmp_path / "supervisor.lock").touch()
    for folder in (tmp_path, tmp_path / "missing"):
        assert read_folder_format(folder) is None
        assert explain_folder_refusal(folder) is None


@pytest.mark.parametrize("left", ["secrets.json", "servers.json"])
def test_a_used_folder_without_a_number_has_format_0(tmp_path: Path, left: str) -> None:
    (tmp_path / left).write_text("{}")
    assert read_folder_format(tmp_path) == 0
    refusal = explain_folder_refusal(tmp_path) or ""
    assert refusal.startswith(f"{tmp_path} has data format 0, which commit c48d17ff of Interlock reads. ")
    assert refusal.endswith("Set INTERLOCK_DATA_DIR to another folder to start anew.")


def test_only_the_format_of_this_release_is_taken(tmp_path: Path) -> None:
    (tmp_path / "format").write_text(f"{FORMAT}\n")
    assert explain_folder_refusal(tmp_path) is None
    (tmp_path / "format").write_text(f"{FORMAT + 1}\n")
    assert f"format {FORMAT + 1}, which a later release of Interlock reads" in (
        explain_folder_refusal(tmp_path) or ""
    )
    (tmp_path / "format").write_text("one")
    with pytest.raises(ValueError, match=r"format.* holds no number"):
        explain_folder_refusal(tmp_path)
