#!/usr/bin/env python3
"""Plants the defects of updates that were once found, one at a time, and shows that the random programs find each.

    tests/planted.py [--markdown] [NAME...]

The random programs are ProgramFuzz of tests/graph/program_fuzz_test.cpp, which compares them with an interpreter in
double. Each defect is a few words of one source file; a copy of it is compiled as the build in $SAMEBYTES_BUILD (build)
compiles it, and put into copies of the library and of test_graph. Nothing in the tree and in the build changes. The
last line counts; the status is 1 if a defect is not found, or if the programs fail without one. It takes a minute for
each defect, most of it the compiler's.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("SAMEBYTES_BUILD", TOP / "build")).resolve()

# Name, what goes wrong, the file, and what its words become.
DEFECTS = [
    ("own", "an update reads its own cell at other elements", "engine/plan/overwrites.cpp",
     "(place == reader->place && is_update(*reader)", "(false && is_update(*reader)"),
    ("beside", "a reader beside an update sees the new value", "engine/plan/overwrites.cpp",
     "          place < reader->place ||", "          (place < reader->place && place < 0) ||"),
    ("fused", "an update shares a kernel with readers of other elements", "engine/plan/fuse.cpp",
     "          Overwrites::is_same_element(*list.nodes", "          (true || Overwrites::is_same_element(*list.nodes"),
    ("waiting", "what waits for a later evaluation reads the new value", "engine/plan/readers.cpp",
     "if (search.reads(*node)) readers.waiting", "if (search.reads(*node) && targets.empty()) readers.waiting"),
    ("views", "a view of a cell shows the new value", "engine/plan/readers.cpp",
     "if (targets.count(&base) != 0 && edge_to_base", "if (targets.empty() && edge_to_base"),
    ("host", "a write by the host changes what was written before it", "engine/graph/overwrite.cpp",
     "  context.evaluator->keep_readers(leaf);\n", ""),
    ("tape", "evaluating an intermediate cuts the gradient behind it", "engine/graph/overwrite.cpp",
     "  if (node->tracks_gradient && !node->inputs.empty() &&",
     "  if (node->tracks_gradient && node->inputs.empty() &&"),
]


def run(words, **options):
    return subprocess.run(words, text=True, capture_output=True, check=True, **options).stdout


def plant(name, file, old, new, work):
    """The path of a test_graph with the defect in it."""
    source = TOP / file
    text = source.read_text()
    if text.count(old) != 1:
        raise SystemExit(f"planted: {name}: {file} has no longer, or not once: {old!r}")
    text = text.replace(old, new)
    if name == "fused":  # the parenthesis that was opened
        text = text.replace("*node.inputs[input].node);", "*node.inputs[input].node));", 1)
    copy = work / source.name
    copy.write_text(text)
    for unit in json.loads((BUILD / "compile_commands.json").read_text()):
        if "samebytes_objects.dir" not in unit["command"]:
            continue
        body = pathlib.Path(unit["file"])
        is_own = body == source
        if not is_own and not (body.match("*/Unity/*") and f'"{source}"' in body.read_text()):
            continue
        words = [word for word in shlex.split(unit["command"]) if not word.endswith("ccache")]
        output = pathlib.Path(words[words.index("-o") + 1])
        changed = copy
        if not is_own:
            changed = work / body.name
            changed.write_text(body.read_text().replace(f'"{source}"', f'"{copy}"'))
        planted = work / output.name
        words[words.index("-o") + 1] = str(planted)
        words[words.index("-c") + 1] = str(changed)
        words = [word for word in words if word != "-Werror"] + ["-O1"]
        run(words, cwd=unit["directory"])
        break
    else:
        raise SystemExit(f"planted: {BUILD} does not compile {file}")
    library = work / "libsamebytes.a"
    shutil.copy(BUILD / "libsamebytes.a", library)
    run(["ar", "r", str(library), str(planted)])
    link = run(["ninja", "-C", str(BUILD), "-t", "commands", "-s", "test_graph"]).strip().splitlines()[-1]
    program = work / "test_graph"
    link = link.replace(" libsamebytes.a", f" {library}").replace("-o test_graph", f"-o {program}")
    if str(library) not in link or str(program) not in link:
        raise SystemExit("planted: the link command of test_graph is not understood:\n" + link)
    run(["bash", "-c", link], cwd=BUILD)
    return program


def search(program):
    """Seconds, and which program gives something else, or what ends the search; None if nothing does."""
    begin = time.monotonic()
    tests = "ProgramFuzz.fused_programs*:ProgramFuzz.programs_op_by_op*"
    outcome = subprocess.run([program, f"--gtest_filter={tests}"], text=True, capture_output=True, cwd=TOP)
    seconds = time.monotonic() - begin
    if outcome.returncode == 0:
        return seconds, None
    if outcome.returncode < 0:
        return seconds, f"signal {-outcome.returncode}"
    seed = re.search(r"seed (\d+)", outcome.stdout)
    if seed:
        return seconds, "program " + seed.group(1)
    error = re.search(r'C\+\+ exception with description "([^"\n]*)', outcome.stdout)
    return seconds, "the error `" + error.group(1) + "`" if error else "another failure"


def main(words):
    is_table = "--markdown" in words
    names = [word for word in words if not word.startswith("--")]
    wrong = [name for name in names if name not in [defect[0] for defect in DEFECTS]]
    if wrong or any(word not in ("--markdown",) for word in words if word.startswith("--")):
        raise SystemExit(__doc__)
    seconds, found = search(BUILD / "test_graph")
    print(f"without a defect: {seconds:.1f} s, " + (found or "no difference"))
    missed = int(found is not None)
    if is_table:
        print("\n| planted | found by | after |\n|---|---|---|")
    chosen = [defect for defect in DEFECTS if not names or defect[0] in names]
    for name, about, file, old, new in chosen:
        with tempfile.TemporaryDirectory(prefix="samebytes-planted-") as folder:
            seconds, found = search(plant(name, file, old, new, pathlib.Path(folder)))
        missed += found is None
        found = found or "NOT FOUND"
        print(f"| {about} | {found} | {seconds:.1f} s |" if is_table else f"{name}: {about}: {found}, {seconds:.1f} s",
              flush=True)
    print(f"{len(chosen)} planted, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
