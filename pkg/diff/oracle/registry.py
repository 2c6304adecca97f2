"""Answers the pairs on standard input with the verdicts of the registry schemas that PyPI cfn-lint ships: one
JSON list for each line. The schemas are read as they are in the wheel, by nothing of ours.

A pair whose values differ at, or below, a path in createOnlyProperties is "replace"; else, in
conditionalCreateOnlyProperties, "maybe"; else "update"; "unknown" where there is no schema, or no such property.
"""

import json
import sys
import zipfile
from decimal import Decimal, InvalidOperation

SCHEMAS = "cfnlint/data/schemas/"


class Registry:
    def __init__(self, wheel, region="us-east-1"):
        self.zip = zipfile.ZipFile(wheel)
        self.hashes = json.loads(self.zip.read(f"{SCHEMAS}providers/{region}.json"))
        self.kept = {}

    def schema(self, name):
        if name not in self.kept:
            found = self.hashes.get(name)
            self.kept[name] = json.loads(self.zip.read(f"{SCHEMAS}resources/{found}.json")) if found else None
        return self.kept[name]


def pointers(schema, key):
    out = []
    for pointer in schema.get(key, []):
        path = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
        # Some pointers name the keyword that describes the items as well.
        out.append([p for p in path if p not in ("properties", "items")])
    return out


def resolve(schema, node):
    while isinstance(node, dict) and "$ref" in node:
        at = schema
        for part in node["$ref"].split("/")[1:]:
            at = at.get(part, {})
        node = at
    return node if isinstance(node, dict) else {}


def scalar(value):
    """One notation for what a template may write in several: 5 and "5", true and "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return str(value)
    return value


def same(a, b):
    a, b = scalar(a), scalar(b)
    if a == b:
        return True
    try:
        return isinstance(a, str) and isinstance(b, str) and Decimal(a) == Decimal(b)
    except InvalidOperation:
        return False


def canonical(value):
    return json.dumps(value, sort_keys=True, default=str)


def leaves(value, path, out):
    """The paths of all scalars in a value that came or went as a whole."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            leaves(member, path + [key], out)
    elif isinstance(value, list) and value:
        for item in value:
            leaves(item, path + ["*"], out)
    else:
        out.append(path)


def differences(schema, node, old, new, path, out):
    """The paths at which two values differ. node is the schema of the value, as far as it is known."""
    node = resolve(schema, node)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            below = node.get("properties", {}).get(key, {})
            if key in old and key in new:
                differences(schema, below, old[key], new[key], path + [key], out)
            else:
                leaves(old.get(key, new.get(key)), path + [key], out)
    elif isinstance(old, list) and isinstance(new, list):
        if node.get("insertionOrder") is False and sorted(map(canonical, old)) == sorted(map(canonical, new)):
            return
        for i in range(max(len(old), len(new))):
            if i < len(old) and i < len(new):
                differences(schema, node.get("items", {}), old[i], new[i], path + ["*"], out)
            else:
                leaves((old + new[len(old):])[i] if i < len(old) else new[i], path + ["*"], out)
    elif isinstance(old, (dict, list)) or isinstance(new, (dict, list)):
        leaves(old, path, out)
        leaves(new, path, out)
    elif not same(old, new):
        out.append(path)


def covers(pointer, path):
    return len(pointer) <= len(path) and all("*" in (a, b) or a == b for a, b in zip(pointer, path))


def verdict(schema, before, pair):
    name = pair["property"]
    if schema is None or name not in schema.get("properties", {}):
        return "unknown"
    changed = []
    if pair.get("gone"):
        leaves(before[name], [name], changed)
    elif name not in before:
        leaves(pair["new"], [name], changed)
    else:
        differences(schema, schema["properties"][name], before[name], pair["new"], [name], changed)
    if not changed:
        return "none"
    for key, word in (("createOnlyProperties", "replace"), ("conditionalCreateOnlyProperties", "maybe")):
        for pointer in pointers(schema, key):
            if any(covers(pointer, path) for path in changed):
                return word
    return "update"


def main():
    registry = Registry(sys.argv[1])
    for line in sys.stdin:
        subject = json.loads(line, parse_float=Decimal)
        schema = registry.schema(subject["type"])
        print(json.dumps([verdict(schema, subject["properties"], pair) for pair in subject["pairs"]]))


if __name__ == "__main__":
    main()
