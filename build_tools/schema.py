"""The closed lists of the content format: kinds, headings, keys. The authoring guide's tables come from here."""

from typing import NamedTuple

ITEM_KINDS = ("true-false", "spot-the-error", "why", "edge-case", "recall", "exercise", "erratum")
# A topic is the page of all items that name its file under `topics`; an index lists every item.
LISTS = ("topic", "index")
KINDS = (*ITEM_KINDS, "page", *LISTS)


class Heading(NamedTuple):
    name: str
    required: bool = True
    repeats: bool = False


# In this order. A page's sections hold running prose and have no closed headings.
HEADINGS: dict[str, tuple[Heading, ...]] = {
    "true-false": (Heading("Claim"), Heading("Why"), Heading("Trap", required=False)),
    "spot-the-error": (
        Heading("Claim"),
        Heading("Error"),
        Heading("Correction"),
        Heading("Trap", required=False),
    ),
    "why": (
        Heading("Question"),
        Heading("Hint", required=False, repeats=True),
        Heading("Answer"),
        Heading("Trap", required=False),
    ),
    "edge-case": (
        Heading("Question"),
        Heading("Hint", required=False, repeats=True),
        Heading("Answer"),
        Heading("Trap", required=False),
    ),
    "recall": (Heading("Front"), Heading("Back")),
    "exercise": (
        Heading("Question"),
        Heading("Hint", repeats=True),
        Heading("Solution"),
        Heading("Trap", required=False),
    ),
    "erratum": (Heading("Claim"), Heading("Correction")),
}


class Key(NamedTuple):
    name: str
    form: str  # how it is written
    meaning: str
    kinds: tuple[str, ...] = KINDS  # where it may stand
    required: tuple[str, ...] = ()  # where it must


FRONT_MATTER = (
    Key("kind", "a kind", "What the items of this file are.", required=KINDS),
    Key("title", "text", "The title of the page, without maths.", required=KINDS),
    Key(
        "level",
        "1 to 5",
        "The level of all exercises in this file.",
        kinds=("exercise",),
        required=("exercise",),
    ),
)

BLOCK = (
    Key(
        "topics",
        "[slug, ...]",
        "What the item is about.",
        kinds=tuple(k for k in ITEM_KINDS if k != "erratum"),
        required=tuple(k for k in ITEM_KINDS if k != "erratum"),
    ),
    Key("see", "[path#id, ...]", "Where it is explained; paths start at content/."),
    Key("verdict", '"true" or "false"', "Whether the claim is true.", ("true-false",), ("true-false",)),
    Key("given", "{name: number}", "The inputs. A number, a list of numbers, or a list of true and false."),
    Key("values", "name: expression = digits", "Computed numbers, each with the digits that are printed."),
    Key(
        "checks", "[{claim, holds, unless}]", "Claims that are executed, each with the change that breaks it."
    ),
    Key(
        "answer",
        "{value: name, within: number}",
        "The number a reader must find, and the tolerance.",
        ("exercise",),
    ),
    Key("figure", "{name: figure, argument: expression}", "A figure, drawn from computed numbers."),
    Key("errata", "[key, ...]", "Entries of the errata page that this item rests on.", ITEM_KINDS),
    Key("aliases", "[id, ...]", "Earlier ids of this item."),
    Key("embed", "id", "Shows the item with this id here as well.", ("page",)),
    Key(
        "abbreviations",
        "{KL: Kullback-Leibler}",
        "What short forms stand for. The first use in each item, and on each running page, links here.",
        ("page",),
    ),
)

CHECK = (
    Key("claim", "text", "What is claimed, in words.", required=KINDS),
    Key("holds", "expression", "A comparison that is true, and reaches library code.", required=KINDS),
    Key(
        "unless", "{name: expression} or an expression", "The change under which it is false.", required=KINDS
    ),
)

ANSWER = (
    Key("value", "name", "One of the values.", required=KINDS),
    Key("within", "number", "How far a reader's number may be off.", required=KINDS),
)
