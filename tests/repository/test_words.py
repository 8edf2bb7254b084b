"""The words of pages, docstrings, comments and errors: American spelling and plain phrases."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SELF = Path(__file__).relative_to(ROOT).as_posix()
#: Beginnings of words in British spelling. Identifiers count too: libraries spell them otherwise.
SPELLINGS = {
    "analyse": "analyze",
    "behaviour": "behavior",
    "catalogue": "catalog",
    "centre": "center",
    "colour": "color",
    "favour": "favor",
    "generalis": "generaliz",
    "grey": "gray",
    "honour": "honor",
    "initialis": "initializ",
    "labelled": "labeled",
    "maximis": "maximiz",
    "minimis": "minimiz",
    "modelled": "modeled",
    "neighbour": "neighbor",
    "normalis": "normaliz",
    "optimis": "optimiz",
    "organis": "organiz",
    "randomis": "randomiz",
    "recognis": "recogniz",
    "serialis": "serializ",
    "signall": "signal",
    "specialis": "specializ",
    "spoilt": "spoiled",
    "summaris": "summariz",
    "towards": "toward",
    "vectoris": "vectoriz",
}
#: Whole words, also of names, and what to write instead.
PHRASES = {
    "amongst": "among",
    "beside": "with, against, next to",
    "for ever": "forever",
    "in place of": "instead of",
    "mend": "fix",
    "mended": "fixed",
    "nobody": "the passive, or a noun",
    "somebody": "a noun",
    "whilst": "while",
    "whoever": "a noun",
}
#: Internals, which users need not know. Pages for users do without them.
INTERNALS = {
    "futex": "wake-up",
    "lease": "what keeps an array valid",
    "leased": "kept",
    "mailbox": "message",
    "slab": "memory of a batch",
    "slabs": "memory of batches",
}
#: Names that others have given.
NAMES = re.compile(r'GoToRedBallGrey|"grey"|NORMALISE|available_parallelism')
#: "There is no", "is no longer" and comparisons are English; "is no list" is "is not a list".
IS_NO = re.compile(r"\b(?:is|are|was|were) no (?!longer|more|less|other|\w+er\b)\w+")
#: A docstring or comment begins with a noun or a verb: "Results of …", not "What … found".
CLAUSE = re.compile(r'(?:"""|^ *//[/!]? )(?:What|How|Who) ', re.MULTILINE)
#: A text without any of these needs no search by patterns, which take a hundred times as long.
SIGNS = [
    *SPELLINGS,
    *PHRASES,
    "is no ",
    "are no ",
    "was no ",
    "were no ",
    '"""what',
    '"""how',
    '"""who',
    "/ what",
    "/ how",
    "/ who",
    "! what",
    "! how",
    "! who",
]
THERE = re.compile(r"\bthere\W*$", re.IGNORECASE)
#: Pages about the inside, or for those who change it.
INSIDE = {"how-it-works.md", "platforms.md", "make-targets.md", "dependencies.md", "release.md"}
WRONG = re.compile(
    rf"(?P<spelling>{'|'.join(SPELLINGS)})\w*"
    rf"|(?<![a-z])(?P<phrase>{'|'.join(PHRASES)})(?![a-z])".replace(" ", r"\s+"),
    re.IGNORECASE,
)
INTERNAL = re.compile(rf"\b(?:{'|'.join(INTERNALS)})\b", re.IGNORECASE)
PATTERNS = ["*.md", "*.py", "*.pyi", "*.rs", "*.h", "*.c", "*.toml", "*.yml", "*Makefile"]


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", *PATTERNS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.split("\0") if name and name != SELF]


def user_pages():
    """The pages of the site, without those about the inside."""
    for name in tracked_files():
        path = Path(name)
        is_inside = path.name in INSIDE or path.parts[1:2] in [("decisions",), ("project",)]
        if path.parts[0] == "docs" and path.suffix == ".md" and not is_inside:
            yield name


def read(name):
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def place(name, text, match):
    return f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"


def faults(name, text):
    """The words of a text that should be others, each with its place and replacement."""
    lower = text.lower()
    if not any(sign in lower for sign in SIGNS):
        return
    for match in WRONG.finditer(text):
        if NAMES.search(text, max(0, match.start() - 20), match.end() + 10):
            continue
        spelling, phrase = match["spelling"], match["phrase"]
        better = (
            SPELLINGS[spelling.lower()] if spelling else PHRASES[" ".join(phrase.lower().split())]
        )
        yield f"{place(name, text, match)}: write {better}"
    for match in IS_NO.finditer(text):
        if not THERE.search(text, max(0, match.start() - 30), match.start()):
            yield f"{place(name, text, match)}: write 'is not a'"
    for match in CLAUSE.finditer(text):
        yield f"{place(name, text, match)}: begin with a noun or a verb"


@pytest.mark.parametrize(
    "text",
    [
        "the behaviour of nobody",
        "Neighbouring rows",
        "uninitialised bytes",
        "keeps it for ever, and not for\never",
        "def test_a_row_beside_another(",
        "this is no list",
        '"""What a run found out."""',
        "    /// What a run found out.",
        "//! How a run ends.",
    ],
)
def test_the_check_finds_wrong_words(text):
    assert list(faults("a.md", text))


@pytest.mark.parametrize(
    "text",
    [
        "there is no list",
        "/// There\n/// is no list",
        "is no longer there",
        "is no faster",
        "amend",
    ],
)
def test_the_check_leaves_right_words_alone(text):
    assert list(faults("a.md", text)) == []


def test_files_are_in_plain_american_english():
    names = tracked_files()
    assert len(names) > 1000
    assert [fault for name in names for fault in faults(name, read(name))] == []


def test_pages_for_users_do_without_internals():
    found = [
        f"{place(name, text, match)}: {INTERNALS[match.group().lower()]}"
        for name in user_pages()
        for text in [read(name)]
        for match in INTERNAL.finditer(text)
    ]
    assert found == []
