"""YAML that others wrote, in which no mapping has a member twice (R-SEC-11)."""

from typing import Any

import yaml
from yaml.constructor import ConstructorError


def read_yaml(text: str) -> Any:
    """The value of one YAML document (JSON is YAML too). Raises yaml.YAMLError, also for a member that is
    given twice, ValueError and RecursionError."""
    loader = yaml.CSafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        check_mappings(root)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def check_mappings(root: yaml.Node) -> None:
    """Look for a mapping that has a member twice. Raises ConstructorError with its place."""
    left, seen = [root], set()
    while left:
        node = left.pop()
        # What an anchor stands for is looked at once.
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _check_names([key for key, _ in node.value])
            left += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value


def _check_names(keys: list[yaml.Node]) -> None:
    names: set[tuple[str, str]] = set()
    for key in keys:
        if not isinstance(key, yaml.ScalarNode):
            continue
        name = (key.tag, key.value)
        if name in names:
            problem = f'the member "{key.value[:100]}" is given more than once'
            raise ConstructorError(None, None, problem, key.start_mark)
        names.add(name)
