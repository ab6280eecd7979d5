# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Which tensors the checkpoints of a directory have: their manifests, which
doc/checkpoint.md draws. What is found is a hint: libdt compares it with the
checkpoint that it loads, and says so if it is of another."""

import glob
import hashlib
import json
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from slurm_dt import _dt
from slurm_dt.ckpt import ranks

_CODES = {"I8": 0, "U8": 1, "I32": 2, "I64": 3, "F16": 4, "BF16": 5, "F32": 6,
          "F64": 7, "F8_E4M3": 8, "F8_E5M2": 9}
_VERSION = 2  # of the manifests that are known
WORDS = {code: word for word, code in _CODES.items()}
_STEP = re.compile(r"step-(\d{12,})|\.step-(\d{12,})\.(partial|old)-[0-9a-f]+")


class Thing(NamedTuple):
    """A tensor or a blob of a checkpoint."""
    kind: str  # "global", "own", "blob"
    code: int  # dt_dtype_t
    shape: Tuple[int, ...]
    in_parts: bool  # parts of several ranks


Structure = Dict[str, Thing]


def folder(dir: Optional[str]) -> str:
    """The directory that libdt takes, "" where nothing names one."""
    return dir or os.environ.get("DT_CKPT", "")


def _folders(dir: Optional[str]) -> List[Tuple[str, bool]]:
    """Where this rank looks: its directories, and the memory of its node, in
    which there may be those of other directories, too: then False. Ranks whose
    directory is another's look nowhere."""
    rank, _size, local_rank = _dt.place()[:3]
    flush = os.environ.get("DT_CKPT_FLUSH")
    if local_rank != 0:
        return []
    run = glob.escape(re.sub("[^A-Za-z0-9_-]", "_", _dt.run()[0] or "none"))
    memory = [path for pattern in ("slurm-dt/%d", "slurm-dt-%d") for path in
              glob.glob(f"/dev/shm/{pattern % os.geteuid()}/{run}/*")]
    disks = [folder(dir)] if rank == 0 or flush else []
    disks += [flush] if flush and rank == 0 else []
    return [(path, True) for path in disks] + [(path, False)
                                               for path in memory]


def _manifests(path: str) -> Iterator[Tuple[int, Dict[str, Any]]]:
    try:
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        match = _STEP.fullmatch(name)
        if not match:
            continue
        try:
            with open(os.path.join(path, name, "manifest.json"), "rb") as file:
                yield int(match.group(1) or match.group(2)), json.load(file)
        except (OSError, ValueError):
            continue


def _thing(tensor: Dict[str, Any]) -> Tuple[str, int, List[int], bool]:
    replicated = tensor["replicated"]
    kind = tensor.get("kind", "global" if replicated else "own")
    return (kind, _CODES[tensor["dtype"]], tensor.get("shape", []),
            kind == "global" and not replicated)


class _Found(NamedTuple):
    step: int  # the newest
    is_sure: bool  # it is one of this directory
    things: Any


def _local(dir: Optional[str]) -> Dict[str, _Found]:
    """What this rank finds, by a digest."""
    found: Dict[str, _Found] = {}
    for path, is_sure in _folders(dir):
        for step, manifest in _manifests(path):
            try:
                things = {name: _thing(tensor) for name, tensor in
                          sorted(manifest["tensors"].items())}
                if manifest["version"] > _VERSION:
                    continue
            except (AttributeError, KeyError, TypeError):
                continue  # torn
            digest = hashlib.sha256(json.dumps(things).encode()).hexdigest()
            old = found.get(digest, _Found(step, is_sure, None))
            found[digest] = _Found(max(step, old.step), is_sure or old.is_sure,
                                   things)
    return found


def find(dir: Optional[str]) -> Iterator[Tuple[int, bool, Structure]]:
    """The different structures, that of the newest checkpoint first: the newest
    step that has it, whether it certainly is of this directory, its things.
    Collective, as is each next one."""
    mine = _local(dir)
    best: Dict[str, Tuple[int, bool]] = {}
    holder: Dict[str, int] = {}
    for rank, known in enumerate(ranks.gather(
            {digest: f[:2] for digest, f in mine.items()})):
        for digest, (step, is_sure) in known.items():
            old = best.get(digest, (step, is_sure))
            best[digest] = max(step, old[0]), is_sure or old[1]
            holder.setdefault(digest, rank)
    for digest in sorted(best, key=lambda d: (-best[d][0], d)):
        things = ranks.broadcast(
            mine[digest].things if digest in mine else None, holder[digest])
        yield (*best[digest], {
            name: Thing(kind, code, tuple(shape), in_parts)
            for name, (kind, code, shape, in_parts) in things.items()})
