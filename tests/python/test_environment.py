# SPDX-License-Identifier: Apache-2.0
"""The place of a process in its job, as the environment tells it."""

from __future__ import annotations

import pytest

from collectives.environment import Place, place
from collectives.errors import InvalidArgumentError

BOTH = "start the program with collrun, or set both, or neither"


def job(**changes: str) -> dict[str, str]:
    """Return the variables of rank 1 of 4, changed as told; "-" takes one away."""
    variables = {"RANK": "1", "SIZE": "4", "JOB": "a"} | changes
    return {f"COLLECTIVES_{k}": v for k, v in variables.items() if v != "-"}


def test_alone_without_variables() -> None:
    assert place({}) == Place(rank=0, size=1, job=None, attempt=0, timeout=0.0)


def test_a_place_in_a_job() -> None:
    assert place(job(ATTEMPT="2", TIMEOUT="1.5")) == Place(1, 4, "a", 2, 1.5)


@pytest.mark.parametrize("name", ["a b/c.1", "größer", "é" * 127, "x" * 255])
def test_the_name_of_the_job_is_text(name: str) -> None:
    assert place(job(JOB=name)).job == name


def test_a_long_name_is_not_repeated() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        place(job(JOB="x" * 3000))
    assert len(str(caught.value)) < 200


def test_without_a_place_the_other_variables_count() -> None:
    assert place(job(RANK="-", SIZE="-", ATTEMPT="2")) == Place(0, 1, "a", 2)


def test_the_name_of_the_job_may_be_left_out() -> None:
    assert place(job(JOB="-")).job is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"RANK": "-"}, f"COLLECTIVES_SIZE is set but COLLECTIVES_RANK is not: {BOTH}"),
        ({"SIZE": "-"}, f"COLLECTIVES_RANK is set but COLLECTIVES_SIZE is not: {BOTH}"),
        ({"RANK": "one"}, "COLLECTIVES_RANK='one' is not an integer"),
        ({"RANK": "-1"}, "COLLECTIVES_RANK='-1' is not an integer"),
        ({"RANK": " 1"}, "COLLECTIVES_RANK=' 1' is not an integer"),
        ({"RANK": "1_0", "SIZE": "40"}, "COLLECTIVES_RANK='1_0' is not an integer"),
        ({"RANK": "\u0661"}, "is not an integer"),
        ({"RANK": "9" * 5000}, "COLLECTIVES_RANK='999999999999999999999999...' is not an integer"),
        (
            {"RANK": "4"},
            "COLLECTIVES_RANK=4 is not below COLLECTIVES_SIZE=4: ranks count from 0 to 3",
        ),
        ({"SIZE": "0"}, "COLLECTIVES_SIZE='0' is not an integer from 1"),
        ({"SIZE": "99999999999999999999"}, "COLLECTIVES_SIZE="),
        ({"SIZE": ""}, "COLLECTIVES_SIZE='' is not an integer"),
        ({"ATTEMPT": "x"}, "COLLECTIVES_ATTEMPT='x' is not an integer from 0"),
        ({"JOB": ""}, "COLLECTIVES_JOB is empty"),
        ({"JOB": "a\n"}, r"COLLECTIVES_JOB='a\n' has a character that cannot be printed"),
        ({"JOB": "\x7f"}, r"COLLECTIVES_JOB='\x7f' has a character that cannot be printed"),
        ({"JOB": "\x9b"}, r"COLLECTIVES_JOB='\x9b' has a character that cannot be printed"),
        ({"JOB": "\u202e"}, r"COLLECTIVES_JOB='\u202e' has a character that cannot be printed"),
        ({"JOB": "\udcff"}, r"COLLECTIVES_JOB='\udcff' has a character that cannot be printed"),
        ({"JOB": "x" * 256}, "COLLECTIVES_JOB has 256 bytes"),
        ({"JOB": "é" * 128}, "COLLECTIVES_JOB has 256 bytes"),
        ({"TIMEOUT": "soon"}, "COLLECTIVES_TIMEOUT='soon' is not a number of seconds"),
        ({"TIMEOUT": "0"}, "COLLECTIVES_TIMEOUT='0'"),
        ({"TIMEOUT": "-3"}, "COLLECTIVES_TIMEOUT='-3'"),
        ({"TIMEOUT": "inf"}, "COLLECTIVES_TIMEOUT='inf'"),
        ({"TIMEOUT": "nan"}, "COLLECTIVES_TIMEOUT='nan'"),
    ],
)
def test_nonsense_is_named(changes: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        place(job(**changes))
    assert words in str(caught.value)
