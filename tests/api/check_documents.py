"""Checks files that no compiler reads: workflow files, templates and hooks parse, and the scripts and presets that they
run exist; CITATION.cff has the version of hartsift.h; the index of C names every exported function. Prints the number of
words of the documents.

usage: check_documents.py [ROOT]
Exit status 77 if PyYAML is missing and nothing else is wrong.
"""
import json
import pathlib
import re
import subprocess
import sys

SCRIPT = re.compile(r"(?:^|[\s;&|])(?:bash|python3|sh)\s+(?:-\S+\s+)*([\w./-]+\.(?:sh|py))")
PRESET = re.compile(r"--preset[= ](\w+)")
WORKFLOW_KEYS = {"name", "on", True, "permissions", "jobs"}  # YAML 1.1 reads the key "on" as true


def yaml_files(root):
    return sorted([*root.glob(".github/**/*.yml"), root / ".pre-commit-config.yaml", root / "CITATION.cff"])


def presets(root):
    settings = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))
    return {preset["name"] for kind in settings if kind.endswith("Presets") for preset in settings[kind]}


def missing_scripts(root, name, command, known):
    """Returns the scripts and presets of a command line that do not exist."""
    faults = [f"{name}: runs {script}, which does not exist" for script in SCRIPT.findall(command) if not (root / script).is_file()]
    return faults + [f"{name}: no preset {preset}" for preset in PRESET.findall(command) if preset not in known]


def check_workflow(root, name, content, known):
    faults = [f"{name}: unknown key {key}" for key in content if key not in WORKFLOW_KEYS]
    commands = [step["run"] for job in content["jobs"].values() for step in job["steps"] if "run" in step]
    if not commands:
        faults.append(f"{name}: runs nothing")
    return faults + [fault for command in commands for fault in missing_scripts(root, name, command, known)]


def check_yaml(root, yaml):
    faults, known = [], presets(root)
    for path in yaml_files(root):
        name = path.relative_to(root).as_posix()
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            faults.append(f"{name}: {error}")
            continue
        if "workflows" in path.parts:
            faults += check_workflow(root, name, content, known)
        elif name == ".pre-commit-config.yaml":
            hooks = [hook for repository in content["repos"] for hook in repository["hooks"]]
            faults += [fault for hook in hooks for fault in missing_scripts(root, name, hook["entry"], known)]
        elif name == "CITATION.cff" and content["version"] != version(root):
            faults.append(f"{name}: version {content['version']}, hartsift.h has {version(root)}")
    return faults


def version(root):
    text = (root / "pipeline/include/hartsift.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"^#define HS_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)$", text, re.M))


def check_index(root):
    """Checks that every exported function is in the index, except the sized initialisers, which macros represent."""
    exported = [line.split()[0] for line in (root / "pipeline/include/exports.txt").read_text(encoding="utf-8").splitlines()
                if line and not line.startswith("#")]
    named = set(re.findall(r"\bhs_\w+", (root / "docs/guide/c_index.md").read_text(encoding="utf-8")))
    return [f"docs/guide/c_index.md: {name} is missing" for name in exported if name.removesuffix("_sized") not in named]


def count_words(root):
    """Returns the number of words, counted as by wc -w."""
    command = ["git", "-C", str(root), "ls-files", "-z", "*.md", "*.rst"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        return 0
    return sum(len((root / name).read_text(encoding="utf-8").split()) for name in names if name and (root / name).is_file())


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    faults = check_index(root)
    try:
        import yaml
        faults += check_yaml(root, yaml)
    except ImportError:
        yaml = None
        print("skipped: PyYAML is not installed")
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults; {count_words(root)} words of documents")
    return 1 if faults else 0 if yaml else 77


if __name__ == "__main__":
    sys.exit(main())
