from build_tools.errors import ContentError, Fault, Place, did_you_mean


def test_a_fault_is_one_line_that_an_editor_can_follow():
    fault = Fault(Place("content/a.md", 3, 14), "wrong-digits", "print 2.4")

    assert str(fault) == "content/a.md:3:14: wrong-digits: print 2.4"


def test_faults_are_sorted_by_place_and_said_once():
    last = Fault(Place("b.md", 1, 1), "x", "last")
    third = Fault(Place("a.md", 10, 1), "x", "third")
    second = Fault(Place("a.md", 9, 20), "x", "second")
    first = Fault(Place("a.md", 9, 3), "x", "first")

    error = ContentError([last, third, first, second, first])

    assert error.faults == (first, second, third, last)
    assert str(error).split("\n") == [
        "a.md:9:3: x: first",
        "a.md:9:20: x: second",
        "a.md:10:1: x: third",
        "b.md:1:1: x: last",
    ]


def test_the_nearest_known_word():
    assert did_you_mean("surogate", ["ratio", "surrogate"]) == 'did you mean "surrogate"?'
    assert did_you_mean("zzz", ["ratio", "clip"]) == "known: clip, ratio"
    assert did_you_mean("zzz", []) == "there is none to choose from"
    assert did_you_mean("zzz", [f"name{n}" for n in range(30)]) == "no known name is near"
