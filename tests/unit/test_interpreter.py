"""An interpreter whose compiler took its loop for code that never runs is refused."""

import pytest

from tests.interpreter import refuse_cold_loop

COLD = "00000000001191ca 000000000000ea49 t _PyEval_EvalFrameDefault.cold\n"
OTHERS = "0000000000203b20 00000000000ffff0 T PyObject_Repr\n                 U memcpy\n"


@pytest.mark.parametrize(
    ("size", "is_cold"), [("0124", True), ("270f", True), ("2710", False), (None, True)]
)
def test_a_loop_that_lies_among_what_never_runs_is_refused(tmp_path, size, is_cold):
    symbols = tmp_path / "symbols"
    hot = f"0000000000203b20 000000000000{size} T _PyEval_EvalFrameDefault\n" if size else ""
    symbols.write_text(OTHERS + COLD + hot)
    if is_cold:
        with pytest.raises(AssertionError, match="the compiler lost its profile"):
            refuse_cold_loop(symbols)
    else:
        refuse_cold_loop(symbols)
