"""A public function that raises says so: in its own docstring, or in that of the interface that it refers to."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "src").rglob("*.py"))
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
# Every check of the ledger raises what the package's docstring says.
COMMON = {"src/acpo/audit/checks/": "MissingEvidenceError"}


def functions(node: ast.AST, owner: str = "", public: bool = True) -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """Yield functions and methods with their names in full, and whether they are public."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions(child, f"{child.name}.", public and not child.name.startswith("_"))
        elif isinstance(child, ast.FunctionDef):
            yield f"{owner}{child.name}", child, public and not child.name.startswith("_")


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> set[str]:
    """Name the exceptions that a function's own body raises and does not catch."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = ast.unparse(called).rsplit(".", 1)[-1]
        return {name} - caught if name[0].isupper() else set()
    found: set[str] = set()
    for field, value in ast.iter_fields(node):
        within = caught
        if isinstance(node, ast.Try) and field == "body":
            types = [handler.type for handler in node.handlers if handler.type is not None]
            within |= {each.id for kind in types for each in ast.walk(kind) if isinstance(each, ast.Name)}
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                found |= raised(child, within)
    return found


DOCSTRINGS = {name: ast.get_docstring(node) or "" for tree in TREES.values() for name, node, _ in functions(tree)}


def documented(docstring: str) -> str:
    """What a docstring and the methods that it refers to say of exceptions."""
    references = re.findall(r"[Ss]ee `(?:\w+\.)*?(\w+\.\w+)`", docstring)
    texts = [docstring, *(DOCSTRINGS.get(name, "") for name in references)]
    return "\n".join(text.partition("Raises:")[2] for text in texts)


@pytest.mark.parametrize("file", TREES)
def test_what_a_public_function_raises_is_documented(file: str) -> None:
    common = {name for folder, name in COMMON.items() if file.startswith(folder)}
    silent = {}
    for name, node, public in functions(TREES[file]):
        said = documented(ast.get_docstring(node) or "")
        missing = {each for each in raised(node) - common if each not in said}
        if public and missing:
            silent[name] = missing
    assert not silent


def test_what_is_caught_or_private_is_not_asked_for() -> None:
    tree = ast.parse(
        "def f():\n try:\n  raise A('')\n except (A, B):\n  raise C from None\n"
        "def g():\n def h():\n  raise D\n return h\n"
        "def _k():\n raise E\n"
    )
    assert [(name, raised(node), public) for name, node, public in functions(tree)] == [
        ("f", {"C"}, True),
        ("g", set(), True),
        ("_k", {"E"}, False),
    ]
