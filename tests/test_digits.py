import pytest

from build_tools.digits import rounded, shown, unit, verify


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("2.40", 0.01),
        ("2.4", 0.1),
        ("24", 1.0),
        ("24.", 1.0),
        ("5.0e-11", 1e-12),
        ("5e-11", 1e-11),
        ("-0.3", 0.1),
        (".25", 0.01),
        ("1E3", 1000.0),
    ],
)
def test_the_last_printed_place(printed, expected):
    assert unit(printed) == expected


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (2.4, "2.4"),
        (2.4, "2.40"),
        (2.3999999999999995, "2.4"),  # what 3 * 0.8 gives in floats
        (2.44, "2.4"),
        (2.36, "2.4"),
        (2.0, "2"),
        (2.49, "2"),
        (1.51, "2"),
        (-2.44, "-2.4"),
        (2 / 3, "0.667"),
        (1.0986122886681098, "1.0986"),
        (0.0, "0"),
        (0.0, "0.00"),
        (-0.0, "0"),
        (0.004, "0.00"),
        (-0.004, "0.00"),
        (5.04e-11, "5.0e-11"),
        (4.96e-11, "5.0E-11"),
        (1234.4, "1234"),
        (0.25, ".25"),
        (2.4, "+2.4"),
        (123456789012.0, "123456789012"),
    ],
)
def test_right_digits(number, printed):
    assert verify(number, printed) == (True, "")


@pytest.mark.parametrize(
    ("number", "printed", "instead"),
    [
        (2.4, "2.5", "2.4"),
        (2.4, "2.3", "2.4"),
        (2.4, "-2.4", "2.4"),
        (-2.4, "2.4", "-2.4"),
        (2.46, "2.4", "2.5"),
        (2.34, "2.4", "2.3"),
        (2 / 3, "0.66", "0.67"),
        (2 / 3, "0.6667000", "0.6666667"),
        (0.006, "0.00", "0.01"),
        (-0.001, "0.01", "0.00"),
        (5.06e-11, "5.0e-11", "5.1e-11"),
        (1234.6, "1234", "1235"),
        (1234.0, "1200", "1234"),
        (0.0, "1", "0"),
    ],
)
def test_wrong_digits(number, printed, instead):
    verdict = verify(number, printed)

    assert not verdict.ok
    assert verdict.hint.endswith(f"rounds to {instead}")


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (0.125, "0.12"),
        (0.125, "0.13"),
        (-0.125, "-0.13"),
        (2.5, "2"),
        (2.5, "3"),
        (0.15, "0.1"),  # the float lies a hair below the tie
        (0.35, "0.4"),  # and this one a hair below, too
        (1.005, "1.00"),
        (0.1 + 0.05, "0.2"),  # a hair above
        (5.5e-11, "5e-11"),
    ],
)
def test_a_tie_needs_one_digit_more(number, printed):
    verdict = verify(number, printed)

    assert not verdict.ok
    assert "half-way" in verdict.hint
    assert verify(number, f"{number:.3f}" if number > 1e-3 or number < 0 else "5.50e-11").ok


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_has_no_digits(number):
    assert "no digits" in verify(number, "1").hint


@pytest.mark.parametrize(
    ("number", "printed"), [(0.1 + 0.2, "0.30000000000000"), (1e16, "10000000000000000")]
)
def test_more_digits_than_floats_have(number, printed):
    assert "at most twelve" in verify(number, printed).hint


@pytest.mark.parametrize("printed", ["-0", "-0.00"])
def test_zero_has_no_sign(printed):
    assert verify(-0.001, printed) == (False, "zero has no sign; delete the minus")


def test_rounded_keeps_the_notation():
    assert rounded(1234.567, "0.1") == "1234.6"
    assert rounded(1234.567, "1") == "1235"
    assert rounded(0.00012345, "1.00e-4") == "1.23e-4"
    assert rounded(-0.001, "0.1") == "0.0"


def test_shown_is_short_and_hides_rounding_noise():
    assert shown(0.1 + 0.2) == "0.3"
    assert shown(2 / 3) == "0.666666666667"
    assert shown(2.0) == "2"
    assert shown(1e-9) == "1e-9"
    assert shown(True) == "true"
    assert shown(-0.0) == "0"
    assert shown(((1.0, 0.5), (True, False))) == "[[1, 0.5], [true, false]]"
