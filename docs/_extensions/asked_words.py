"""Words that people search for and pages call otherwise, and excerpts of pages for a search from the disk.

The words become entries of the index, which the search ranks by how much of an entry is asked for, before titles and text. On a
disk a browser lets no page read another, so the texts of pages lie in a script, from which the search page takes its excerpts.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ASKED = {
    "install": "install; pip install; checkout; requirements",
    "start": "first program; hello world; getting started; quick start",
    "bsp": "superstep; bulk synchronous; what is an ipu",
    "codelets": "half precision; float16; fp16; mixed precision; data types; what is allowed in a codelet; supported python",
    "cheat-sheet": "poplar c++; c++",
    "report": "see exchange; how do i see exchange; exchange map; profiler; popvision; graph analyser; see memory; timeline",
    "model": "cycle count; how many cycles; cost model; cycle estimate; how accurate; accuracy of cycles",
    "not-there-yet": "quarter; fp8; missing features; unsupported; sparse",
    "pytorch": "poptorch; train a model; pytorch model; training loop; optimizer",
    "profile-file": "sql; sqlite; profile.pop",
    "command-line": "environment variables; cli; command line",
    "how-to/out-of-memory": "out of memory; not enough memory; memory limit; too much memory; does not fit",
    "how-to/save-and-load": "load weights; save weights; checkpoint; save a model; compile once; save an executable",
    "how-to/several-ipus": "several ipus; multiple ipus; multi-ipu; pipeline; sharding; model parallel; data parallel; replicas; "
    "replicated; replicated graph",
    "how-to/nan": "nan; not a number; infinity; floating point exception; where does nan come from",
    "how-to/debug": "race; race condition; data race; print; breakpoint; debugger; uninitialised memory",
    "how-to/slow-program": "slow program; why is it slow; idle threads; idle tiles; tile balance; load balance; optimise; optimize",
    "how-to/fast-codelet": "fast codelet; vectorise; vectorize; simd; speed up a codelet",
    "how-to/test-a-program": "unit test; pytest; how do i test; test exchange",
    "how-to/notebooks": "jupyter; notebook; notebooks",
    "how-to/streams": "streams; data stream; host data; feed data; read a tensor; copy to the host",
    "how-to/use-the-libraries": "matrix multiplication; matmul; convolution; reduce; softmax",
    "how-to/read-a-profile": "perfetto; read a profile; trace",
    "how-to/continuous-integration": "github actions; continuous integration; gitlab",
    "how-to/port": "port; port from c++; migrate",
    "how-to/add-an-operation": "custom operation; custom op; new operation",
    "api/poprand": "random numbers; random seed; seed",
}
"""By page: what is asked for, with semicolons between."""
TEXTS = "page_texts.js"


def check_pages(app: Sphinx, env: BuildEnvironment) -> None:
    """Refuse names of pages that are not there."""
    gone = ASKED.keys() - env.found_docs
    if gone:
        raise ValueError(f"asked_words.py names pages that are not there: {', '.join(sorted(gone))}")


def add_entries(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Give a page entries that it does not show: main ones, which the search does not put behind all else."""
    words = [word.strip() for word in ASKED.get(page, "").split(";") if word.strip()]
    if words:
        doctree.insert(0, addnodes.index(entries=[("single", word, "", "main", None) for word in words]))


def write_texts(app: Sphinx, problem: Exception | None) -> None:
    """Write the text of each page for excerpts."""
    if problem is not None or app.builder.format != "html":
        return
    texts = {}
    for page in sorted(app.env.found_docs):
        doctree = app.env.get_doctree(page)
        texts[page] = " ".join(node.astext() for node in doctree.findall(nodes.Text)).strip()
    script = f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
    (Path(app.outdir) / "_static" / TEXTS).write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-updated", check_pages)
    app.connect("doctree-resolved", add_entries)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
