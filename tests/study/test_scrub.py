"""What tells who somebody is goes; what tells how a patient is stays."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.scrub import PLACEHOLDERS, certain, doubtful, scrub

TELLING = [
    ("저는 김민수입니다.", "저는 [NAME]입니다."),
    ("안녕하세요, 학생의사 박서준입니다. 앉으세요", "안녕하세요, 학생의사 [NAME]입니다. 앉으세요"),
    ("본과 4학년 김민지입니다", "본과 4학년 [NAME]입니다"),
    ("저는 의과대학 3학년 학생 김하나라고 합니다", "저는 의과대학 3학년 학생 [NAME]라고 합니다"),
    ("제 이름은 이슬이에요", "제 이름은 [NAME]이에요"),
    ("제 이름은 김준이에요.", "제 이름은 [NAME]이에요."),
    ("저는 오늘 실습 나온 학생 차은우라고 합니다", "저는 오늘 실습 나온 학생 [NAME]라고 합니다"),
    ("저는 박준이라고 해요", "저는 [NAME]이라고 해요"),
    ("네, 안녕하세요. 신세경이라고 해요.", "네, 안녕하세요. [NAME]이라고 해요."),
    ("성함은 남궁민입니다", "성함은 [NAME]입니다"),
    ("My name is Kim Minsu, nice to meet you", "My name is [NAME], nice to meet you"),
    ("hi . my name is dr. edwards . nice to meet you", "hi . my name is dr. [NAME] . nice to meet you"),
    ("번호는 010-1234-5678이에요", "번호는 [PHONE]이에요"),
    ("01012345678로 전화 주세요", "[PHONE]로 전화 주세요"),
    ("+82 10 1234 5678", "[PHONE]"),
    ("병원은 02-345-6789예요", "병원은 [PHONE]예요"),
    ("공일공 일이삼사 오육칠팔이요", "[PHONE]이요"),
    ("a.kim@snu.ac.kr로 보내세요", "[EMAIL]로 보내세요"),
    ("900101-1234567이요", "[RRN]이요"),
    ("주민번호 9001012234567입니다", "주민번호 [RRN]입니다"),
    ("900101-1******", "[RRN]"),
    ("학번은 2021-12345입니다", "학번은 [STUDENT_NUMBER]입니다"),
]
CLINICAL = [
    "혈압 120/80이고 38.5도예요", "검사번호 010", "수치는 010.5예요", "0.01012345678", "헤모글로빈 9.1",
    "백혈구 12,300", "맥박 88회, 120 80 70 20 36", "2026-11-30에 왔어요", "3월 20일부터 20대예요", "하루 010 mg",
    "my name is the same", "I am tired", "This is a test",
    "991399-1234567", "저는 고혈압입니다", "저는 주부예요", "저는 조현병이에요", "저는 공무원입니다",
    "저는 이 환자입니다", "본과 4학년입니다", "저는 변비예요", "저는 여자예요", "저는 인턴이라고 해요",
    "방광암 환자는 아니에요", "저는 본과 4학년 여학생입니다", "저는 마취과 전공의입니다", "약 이름은 모름",
    "이름이 뭐예요? 성함이 어떻게 되세요?", "제 이름은 알려 드릴 수 없어요",
]  # fmt: skip
DOUBTFUL = [
    ("10-1234-5678로 주세요", "number", "10-1234-5678"),  # a spreadsheet drops the first 0
    ("내과 김민수 교수님이 보셨어요", "titled_name", "김민수"),
    ("서울시 강남구 테헤란로 12에 살아요", "address", "서울시 강남구 테헤란로 12"),
    ("카톡 아이디는 minsu99예요", "handle", "카톡 아이디는 minsu99"),
    ("계좌는 110-234-567890", "number", "110-234-567890"),
    ("20211234", "number", "20211234"),
]


@pytest.mark.parametrize(("text", "clean"), TELLING)
def test_what_tells_who_somebody_is_is_replaced(text, clean):
    assert clean == scrub(text).text


@pytest.mark.parametrize("text", CLINICAL)
def test_what_tells_how_a_patient_is_stays(text):
    assert text == scrub(text).text
    assert [] == doubtful(text)


@pytest.mark.parametrize(("text", "kind", "words"), DOUBTFUL)
def test_what_a_person_must_decide_is_only_reported(text, kind, words):
    assert text == scrub(text).text
    assert [(kind, words)] == [(f.kind, f.text) for f in doubtful(text)]


def test_what_was_replaced_is_counted_by_kind():
    found = scrub("저는 김민수입니다. 010-1234-5678, 010-8765-4321, a@b.kr")
    assert {"name": 1, "phone": 2, "email": 1} == dict(found.counts)


def test_cleared_words_stay_and_redacted_ones_go():
    assert "저는 정대식입니다" == scrub("저는 정대식입니다", cleared=["정대식"]).text
    found = scrub("행복의원에서 왔어요", redact=["행복의원"])
    assert ("[REDACTED]에서 왔어요", {"redacted": 1}) == (found.text, dict(found.counts))
    assert [] == doubtful("김민수 교수님", cleared=["김민수"])


def test_decomposed_hangul_is_read_like_composed():
    import unicodedata

    assert "저는 [NAME]입니다." == scrub(unicodedata.normalize("NFD", "저는 김민수입니다.")).text


NAMES = [  # the last four are words to the dictionary
    "김민수", "이영희", "박서준", "정대식", "최지우", "강하늘", "서하늘", "한가람", "오세훈", "윤아름",
    "남궁민", "김솔", "변우석", "나도향", "우주원", "이루리", "전지현", "차은우", "신세경", "여진구",
    "노윤서", "구본승", "하정우", "배두나", "권나라", "안보현", "홍길동", "유재석", "양세형", "손예진",
    "백종원", "허준호", "남주혁", "심은경", "곽동연", "성시경", "지창욱", "엄정화", "채수빈", "천우희",
    "주하나", "조은", "문상훈", "손하늘",
]  # fmt: skip
NO_NAMES = [
    "고혈압", "공무원", "주부", "남자", "여자", "정상", "한국인", "이혼", "전공의", "조리사", "인턴", "채식",
    "변비", "심부전", "우울증", "장애인", "천식", "임신", "유방암", "신장병", "진통", "구토", "오한", "노인",
    "소아과", "강사", "배우", "장염", "지방간", "설사", "기침", "심장", "석사", "성인", "문과", "양성",
    "음성", "도우미", "한의사", "조현병", "황달", "여성", "남성", "백수", "교사", "고등학생", "마취과",
    "연구원", "전문의", "주치의", "기혼", "미혼", "노동자", "이모", "고모", "오빠", "기사", "변호사", "이분",
]  # fmt: skip
FRAMES = (
    "저는 {}입니다.", "안녕하세요, 학생의사 {}입니다.", "본과 3학년 {}입니다", "안녕하세요, {}입니다.",
    "저는 의대생 {}이고 오늘 면담을 맡았어요", "저는 학생 {}이라고 합니다", "실습 나온 {}입니다.", "저, {}인데요",
)  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
def test_nine_names_of_ten_are_found_and_no_occupation_or_illness(frame):
    missed = [name for name in NAMES if not certain(frame.format(name))]
    assert len(missed) <= 0.1 * len(NAMES), missed
    assert [] == [word for word in NO_NAMES if certain(frame.format(word))]


PIECES = st.sampled_from(
    [t for t, _ in TELLING] + CLINICAL + [t for t, *_ in DOUBTFUL] + list(PLACEHOLDERS) + ["네.", "아니요, ", " "]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=4).map(" ".join))
def test_nothing_certain_is_left_and_scrubbing_again_changes_nothing(text):
    once = scrub(text).text
    assert [] == certain(once)
    assert once == scrub(once).text


@settings(max_examples=60, deadline=None)
@given(
    st.from_regex(r"\A01[016789][-. ]?[0-9]{3,4}[-. ]?[0-9]{4}\Z"), st.sampled_from(["이에요", "로", ".", " 번"])
)
def test_any_mobile_number_goes_with_any_particle_behind_it(number, particle):
    assert f"제 번호는 [PHONE]{particle}" == scrub(f"제 번호는 {number}{particle}").text


@settings(max_examples=60, deadline=None)
@given(st.integers(60, 250), st.integers(30, 150), st.integers(300, 430))
def test_no_vital_sign_is_taken_for_a_number_of_somebody(systolic, diastolic, tenths):
    text = f"혈압 {systolic}/{diastolic}, 체온 {tenths / 10:.1f}도, 맥박 {diastolic}회"
    assert text == scrub(text).text


@pytest.mark.parametrize("piece", ["a", "가", "1", "a.", "010-", "저는 ", "학번 ", "김"])
def test_an_endless_answer_is_read_in_little_time(piece):
    begun = time.perf_counter()
    endless = piece * (40_000 // len(piece))
    scrub(endless)
    doubtful(endless)
    assert time.perf_counter() - begun < 5  # a pattern that starts anew at each character would take minutes
