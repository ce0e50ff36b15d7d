"""Check the English of code and documents; `python tests/layout/prose.py [PATH ...]` prints findings and cures."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TEXTS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""Tokens of strings; since Python 3.12 an f-string has tokens of its own."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One forbidden pattern and the words to use instead."""

    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A place that breaks a rule."""

    line: int
    text: str
    instead: str


def _rule(pattern: str, instead: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), instead)


RULES = (
    _rule(
        r"(?<!\bthere )\b(is|are|was|were|be) (no|none)\b(?! longer| more\b)", "write 'not a', 'not allowed', 'no such'"
    ),
    _rule(r"; give\b(?! (up|way|back)\b| it back\b)", "write 'pass', 'set', 'use', 'write' or 'choose'"),
    _rule(r"\bin vain\b", "write 'without success' or 'failed'"),
    _rule(r"\b(told|tells?|telling|believe[sd]?|wish(es|ed)?|heard|hears?)\b", "values are set, used, trusted, read"),
    _rule(r"\b(is|are|was|were|be|been|being) (asked|dialled)\b", "write 'requested', 'read' or 'contacted'"),
    _rule(r"\b(who|what|which|whom)ever\b", "name the thing, or address the reader"),
    _rule(
        r"\b(about|after|all|and|as|at|before|beside|by|for|from|in|into|is|of|on|only|than|to|with|without) what\b",
        "name the thing instead of 'what …'",
    ),
    _rule(
        r"(?:^|[.:;|] )\s*(What|Who|Where) [^.?\n]*(?:[.;]|$)(?!\?)",
        "start the sentence with a noun, not with 'What …'",
    ),
)
"""Forbidden in documents, comments, docstrings and messages."""

PRIVATE_WORDS = frozenset({"told", "asked", "heard", "wish", "wishes", "wished", "doze", "rouse", "whereabouts"})
"""Forbidden as words of identifiers: a local is `payload`, `pods`, `query`."""

PUBLIC_NAMES = frozenset({"start_told"})
"""Names that programs of users read: keys of the goodput report's JSON."""

PRIVATE_LOCALS = frozenset({"complaint", "found", "said"})
"""Forbidden as whole identifiers of the libraries, of what runs in a cluster and of tests."""

FIRST_LINE_WIDTH = 80
_NOT_IMPERATIVE = re.compile(
    r"(?:The|A|An|This|That|These|Those|Whether|What|Who|Whom|Whose|Where|When|Why|How|If|As|It|Its|One|Each|Every|All"
    r"|Any|Some|No|Not|Nothing|Everything|In|On|At|For|Of|From|To|With|By|Same|Like|So|Here|There|\W.*)$"
)
_NOT_NAMED = re.compile(r"(?:How many|How much|So many|Until|Those|The same)\b")
"""Beginnings of docstrings that do not name the value."""
_CODE = re.compile(r"`+[^`\n]*`+|https?://\S+|“[^”\n]*”")
_FENCE = re.compile(r"^(\s*)(```|~~~)")
DOCUMENTS = {".md", ".txt", ".tpl", ".yaml", ".toml"}
LIBRARIES = ("sdk/src/", "shim/src/", "api/src/", "kube/src/", "operator/src/", "webhook/src/")
PRODUCT = (*LIBRARIES, "diagnosis/src/", "cli/src/", "view/src/")
HELP = (
    "cli/src/mldiagnostics_cli/commands/",
    "cli/src/mldiagnostics_cli/mcp/tools.py",
    "cli/src/mldiagnostics_cli/program.py",
)
"""Docstrings here are help of commands and tools, which wraps."""
EXEMPT = ("tests/layout/prose.py", "tests/layout/test_prose.py")


def check_text(text: str, line: int = 1) -> Iterator[Finding]:
    """Yield the findings of running text; code in backticks is not prose."""
    blanked = _CODE.sub(lambda code: "`" * len(code[0]), text)
    for rule in RULES:
        for match in rule.pattern.finditer(blanked):
            if not match[0].rstrip().endswith("?") and blanked[match.end() : match.end() + 1] != "?":
                yield Finding(line + blanked.count("\n", 0, match.start()), match[0].strip(), rule.instead)


def check_document(text: str) -> Iterator[Finding]:
    """Yield the findings of a document; fenced blocks are code."""
    fenced, kept = False, []
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            line = ""  # noqa: PLW2901 - keeps the numbers of the lines
        kept.append("" if fenced else line.lstrip("#> "))
    yield from check_text("\n".join(kept))


def check_python(source: str, *, first_lines: bool, private_locals: bool) -> Iterator[Finding]:
    """Yield the findings of a module: comments, strings and identifiers.

    Args:
        source: Text of the module.
        first_lines: Check the first lines of docstrings too.
        private_locals: Check the names of `PRIVATE_LOCALS` too.
    """
    tree = ast.parse(source)
    docstrings = dict((*_attributes(tree), *(_docstrings(tree) if first_lines else ())))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT or (token.type in TEXTS and " " in token.string):
            yield from check_text(token.string.lstrip("#rbfuRBFU\"' "), line)
        if token.type == tokenize.NAME:
            words = PRIVATE_WORDS.intersection(token.string.lower().split("_"))
            if token.string in PUBLIC_NAMES:
                continue
            if words or (private_locals and token.string in PRIVATE_LOCALS):
                yield Finding(line, token.string, "name the value: `payload`, `pods`, `query`")
    for line, finding in docstrings.items():
        yield Finding(line, *finding)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, tuple[str, str]]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if not text:
            continue
        first, line = text.splitlines()[0], node.body[0].lineno
        if len(first) > FIRST_LINE_WIDTH:
            yield line, (first, f"at most {FIRST_LINE_WIDTH} characters in a docstring's first line")
        elif _is_function(node) and not _is_imperative(first.split()[0]):
            yield line, (first, "start with an imperative: 'Return …', 'Yield …', 'Check …'")


def _attributes(tree: ast.Module) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the docstrings that begin without the thing that they describe."""
    for node in ast.walk(tree):
        text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else ""
        if isinstance(text, str) and _NOT_NAMED.match(text):
            yield node.lineno, (text.splitlines()[0], "name the thing: 'Number of …', 'Limit of …'")


def _is_function(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    decorators = {ast.unparse(each).split("(")[0].rpartition(".")[2] for each in node.decorator_list}
    return not decorators & {"property", "cached_property", "override", "fixture"}


def _is_imperative(word: str) -> bool:
    word = word.strip(".,:;")
    is_third_person = word.endswith("s") and not word.endswith(("ss", "us"))
    is_participle = word.endswith(("ed", "ing")) and word not in _VERBS
    return not (_NOT_IMPERATIVE.match(word) or is_third_person or is_participle)


_VERBS = frozenset({"Feed", "Need", "Exceed", "Proceed", "Embed", "Shed", "Seed", "Bring", "Ping", "String", "Speed"})


def check_file(path: Path) -> Iterator[Finding]:
    """Yield the findings of one file of the repository."""
    name = path.relative_to(REPOSITORY).as_posix()
    if path.suffix == ".py":
        yield from check_python(
            path.read_text(),
            first_lines=name.startswith(PRODUCT) and not name.startswith(HELP),
            private_locals=name.startswith((*LIBRARIES, "diagnosis/src/", "view/src/", "tests/", "e2e/")),
        )
    else:
        yield from check_document(path.read_text())


def files(beneath: Iterable[str] = ()) -> list[Path]:
    """Return the files that hold prose, beneath these paths or all.

    Those that git does not know yet are among them: a gate must not pass before a commit and fail after it.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *beneath],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    names = [each for each in listed if Path(each).suffix in {".py", *DOCUMENTS} and each not in EXEMPT]
    return [REPOSITORY / each for each in names if (REPOSITORY / each).is_file()]


def main(paths: list[str]) -> int:
    """Print every finding; return 1 if there are any."""
    number = 0
    for path in files(paths):
        for finding in sorted(check_file(path), key=lambda each: each.line):
            number += 1
            print(f"{path.relative_to(REPOSITORY)}:{finding.line}: {finding.text!r}: {finding.instead}")
    if number:
        print(f"{number} findings", file=sys.stderr)
    return int(bool(number))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
