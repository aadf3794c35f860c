import pytest

from study.language.quantities import conflict, quantities


@pytest.mark.parametrize(("one", "other"), [
    ("사흘 전", "3일 전"), ("석 달", "3개월"), ("세 달", "석 달"), ("두 갑", "2갑"), ("3킬로", "3kg"),
])  # fmt: skip
def test_one_quantity_has_many_wordings(one, other):
    assert quantities(one) == quantities(other)
    assert not conflict(one, other)


def test_different_numbers_of_one_unit_conflict():
    assert conflict("하루 두 갑", "하루 한 갑")
    assert conflict("1992년 7월 2일", "1993년 7월 2일")


def test_different_units_do_not_conflict():
    assert not conflict("2주 전", "사흘 전")
