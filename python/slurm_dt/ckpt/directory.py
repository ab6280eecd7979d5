# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""A checkpoint directory: saving a state and loading it."""

import atexit
import errno
import hashlib
import os
import signal
import sys
import weakref
from typing import Any, Dict, List, Optional, Set, Tuple

import torch

from slurm_dt import _dt
from slurm_dt.basics import _World, join_world
from slurm_dt.ckpt import ranks, structure
from slurm_dt.ckpt.structure import Structure
from slurm_dt.ckpt.tree import (
    Decoder, Entry, Tree, RESERVED, dtype_of, element_bytes, escape, is_below,
    own_blob, pack, set_own, unpack)

STATE = RESERVED + "state"  # the blob with all that is no tensor
OWN = RESERVED + "own"  # that of each rank
_VERSION = 1  # of the blob STATE
_SHOWN = 3  # names in an error


# ---- the handle ----

class Handle:
    """libdt's handle, with the tensors that it knows. libdt cannot forget a
    tensor: where other ones are to be saved, another handle is opened."""

    def __init__(self, dir: Optional[str], keep: Optional[int]) -> None:
        self.dir = None if dir is None else os.fspath(dir)
        self.keep = -1 if keep is None else keep
        self.added: Dict[str, Entry] = {}
        self.is_lost = False  # it could not be opened again: try once more
        self.ckpt = self._open()

    def _open(self) -> Any:
        ranks.settle()
        return _dt.checkpoint(self.dir, self.keep)

    def renew(self) -> None:
        """Have one without tensors. Collective. What failed in the background
        is raised, but for a full disk, of which a line tells."""
        if not self.added and not self.is_lost:
            return
        try:
            if not self.is_lost:
                self.ckpt.wait()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            if _dt.place()[0] == 0:
                print(f"slurm_dt: {error.strerror}; the next one is tried all "
                      f"the same", file=sys.stderr, flush=True)
        ranks.settle()
        self.leave()
        self.ckpt = self._open()
        self.is_lost = False

    def leave(self) -> None:
        """Close it; renew() opens it again."""
        self.ckpt.close()
        self.added = {}
        self.is_lost = True

    def add(self, entries: Dict[str, Entry]) -> None:
        for name, e in entries.items():
            self.ckpt.add(name, e.tensor.data_ptr(), e.code, e.shape, e.offset,
                          e.extent, e.tensor)
        self.added = dict(entries)

    def has(self, entries: Dict[str, Entry]) -> bool:
        """Whether it has these tensors, at these addresses."""
        return not self.is_lost and list(self.added) == list(entries) and all(
            _same(e, self.added[name]) for name, e in entries.items())


def _type(e: Entry) -> Tuple[Any, ...]:
    return e.code, e.shape, e.offset, e.extent


def _same(a: Entry, b: Entry) -> bool:
    return a.tensor.data_ptr() == b.tensor.data_ptr() and _type(a) == _type(b)


def text_of(code: int, shape: Tuple[int, ...]) -> str:
    """As in the errors of libdt: "F32 [128, 784]"."""
    return f"{structure.WORDS.get(code, code)} {list(shape)}"


# ---- what differs ----

def _some(names: List[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def compare(tree: Tree, there: Structure) -> str:
    """How the checkpoint's tensors differ from those of the program, "" if they
    do not."""
    ours = {**tree.entries, **{name: tree.entries[of] for name, of in
                               tree.aliases.items()}}
    may_miss, may_have = ([escape(path) for path in paths]
                     for paths in (tree.lenient, tree.open))
    missing = sorted(name for name in ours if name not in there
                     and not is_below(name, may_miss))
    extra = [name for name, thing in there.items() if thing.kind != "blob"
             and name not in ours and name not in tree.in_blob
             and not is_below(name, may_have)]
    texts = []
    if missing:
        texts.append(f"it has not {_some(missing)} of the program")
    if extra:
        texts.append(f"the program has not {_some(extra)} of it")
    other = [name for name, entry in ours.items() if name in there
             and there[name].kind != "blob"
             and (there[name].code, there[name].shape)
             != (entry.code, entry.shape)]
    for name in other[:_SHOWN] if not texts else []:
        texts.append(
            f"{name} is {text_of(there[name].code, there[name].shape)} there "
            f"and {text_of(ours[name].code, ours[name].shape)} in the program")
    if not texts:
        for name, thing in there.items():
            if thing.kind == "own":
                texts.append(f"{name} is each rank's own, of a program in C")
            elif thing.in_parts and name not in ours and _dt.place()[1] > 1:
                texts.append(
                    f"{name} is spread over the ranks, and the program has "
                    f"none yet: give the state that torch.distributed."
                    f"checkpoint.state_dict.get_state_dict returns")
            if texts:
                break
    return "; ".join(texts)


# ---- the directory ----

_open: "weakref.WeakSet[Directory]" = weakref.WeakSet()


def _leave_world() -> None:
    """Before there is another world: directories are opened again in it."""
    for directory in list(_open):
        directory.handle.leave()


_World.on_reset.append(_leave_world)


def _in_child() -> None:
    """A worker of a loader is ended by SIGTERM, which libdt's handler, as it was
    inherited, would only note. Python does not know of that handler."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_in_child)


def _at_exit() -> None:
    """Before the world is left: what is being written is waited for, but not by
    a program that has failed, as other ranks may wait for it elsewhere."""
    failed = hasattr(sys, "last_type") or hasattr(sys, "last_exc")
    for directory in list(_open):
        if failed:
            directory.handle.ckpt.abandon()
        else:
            directory.close()


class Directory:
    """A directory of checkpoints, which is created if it is not there.

    ``dir``: a path on a file system that all nodes share, or None for that of
    ``--dt-ckpt`` (DT_CKPT). ``keep``: how many complete checkpoints stay (0:
    all; None: as ``--dt-ckpt-keep`` says, else 2).

    All ranks make it, and call its functions, in the same order with equal
    arguments but for the data; each blocks. It joins the world, as
    ``hvd.init()`` and ``init_process_group("dt")`` do. One thread at a time
    uses it. Ctrl-C is delivered when a call returns.

    A *state* is a dict of tensors, plain values, dicts, lists, tuples, other
    objects that can be pickled, and objects that have ``state_dict()`` and
    ``load_state_dict()``, as modules, optimizers, schedulers and samplers. What
    is in it is the same on all ranks, and is written once, but for DTensors, of
    which each rank writes its part, and for :class:`Own` values.

    Errors: ValueError, a bad argument; OSError with ENOSPC, EIO, EBUSY (another
    job has the directory) or EBADMSG (all checkpoints are damaged);
    HorovodInternalError, a rank is gone."""

    def __init__(self, dir: Optional[str] = None, keep: Optional[int] = None
                 ) -> None:
        _dt.should_exit()  # from now on SIGTERM is a notice
        join_world()
        self.handle = Handle(dir, keep)
        self.keep = keep
        self._staging: Dict[str, Any] = {}  # memory for what is not direct
        self._moved: Set[str] = set()  # tensors whose address has changed
        self._types: Dict[str, Any] = {}  # of the tensors of the last save
        self._changed: Set[str] = set()  # whose shape has changed once
        self._loose: Set[str] = set()  # and again: they are in the blob
        if not _open:
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)
        _open.add(self)

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what :meth:`save_async` began, then close. Not collective; a
        second call does nothing."""
        self.handle.ckpt.close()
        _open.discard(self)

    # -- saving --

    def save(self, state: Dict[str, Any], step: int) -> None:
        """Write the state as step-``step``. On return it is complete on disk;
        or every rank has the same error, and older checkpoints are as they
        were: after an OSError the training can go on."""
        self._name(state)
        self.handle.ckpt.save(step)

    def save_async(self, state: Dict[str, Any], step: int) -> None:
        """The same, but return when the tensors are copied into the memory of
        the node; the rest is written in the background, and the program may
        change them. Waits for the one before, and raises its error; of a full
        disk a line tells instead, and the next one is tried."""
        self._name(state)
        self.handle.ckpt.save_async(step)

    def wait(self) -> None:
        """Wait until what :meth:`save_async` began is on disk. Raises the error
        with which it ended."""
        if not self.handle.is_lost:
            self.handle.ckpt.wait()

    def _name(self, state: Dict[str, Any]) -> None:
        """Let libdt know the tensors and the blobs of the state."""
        error, tree, entries, blobs = None, None, {}, {}
        try:
            tree = self._walk(state)
            entries, blobs = tree.entries, self._blobs(tree)
        except Exception as e:
            error = e
        self.publish(entries, blobs, error)
        self._changed |= self._other(entries)
        self._loose |= tree.in_blob if tree else set()
        self._types = {name: (e.code, e.shape) for name, e in entries.items()}

    def publish(self, entries: Dict[str, Entry], blobs: Dict[str, bytes],
                error: Optional[Exception] = None) -> None:
        """Let libdt know these, which it has to save: all ranks the same names,
        types and shapes. Raises the error of any rank on all."""
        try:
            entries = self._entries(entries)
        except Exception as e:
            error = error or e
        types = [(name, e.code, e.shape) for name, e in entries.items()]
        text = repr((types, sorted(blobs))).encode()
        digest = hashlib.sha256(text).hexdigest()
        known = self.handle.has(entries)
        records = ranks.agree([digest, known], error)
        if any(d != digest for d, _ in records):
            self._disagree(types, sorted(blobs))
        if not all(known for _, known in records):
            self.handle.renew()
            self.handle.add(entries)
        for name, blob in sorted(blobs.items()):
            self.handle.ckpt.set_blob(name, blob, name != OWN)

    def _walk(self, state: Dict[str, Any]) -> Tree:
        """The tree of the state. A tensor whose shape changes for the second
        time goes into the blob from then on, which may change its size."""
        if not isinstance(state, dict):
            raise ValueError(f"a state is a dict, not a "
                             f"{type(state).__name__}")
        tree = Tree(state, loose=self._loose)
        again = self._other(tree.entries) & self._changed
        return Tree(state, loose=self._loose | again) if again else tree

    def _other(self, entries: Dict[str, Entry]) -> Set[str]:
        """The tensors whose type or shape is not that of the last save."""
        return {name for name, e in entries.items() if e.offset is None and
                self._types.get(name, (e.code, e.shape)) != (e.code, e.shape)}

    def _blobs(self, tree: Tree) -> Dict[str, bytes]:
        head = {"version": _VERSION, "ranks": _dt.place()[1],
                "state": tree.head}
        writes = _dt.place()[0] == 0
        blobs = {STATE: pack(head, tree.parts) if writes else b""}
        if tree.own:
            blobs[OWN] = own_blob(tree.own)
        for name in tree.in_blob:
            blobs[name] = b""
        for name, of in tree.aliases.items():
            blobs[name] = of.encode()
        return blobs

    def _entries(self, wanted: Dict[str, Entry]) -> Dict[str, Entry]:
        """The tensors as libdt gets them: what is not as the checkpoint has it
        is copied into memory of ours, and so is what moves each time."""
        added, entries = self.handle.added, {}
        for name, entry in wanted.items():
            old = added.get(name)
            if old is not None and entry.direct and _type(old) == _type(entry) \
                    and not _same(old, entry) and name not in self._staging:
                if name in self._moved:
                    entry = entry._replace(direct=False)
                self._moved.add(name)
            if name in self._staging:
                entry = entry._replace(direct=False)
            entries[name] = entry if entry.direct else self._stage(name, entry)
        return dict(sorted(entries.items()))

    def _stage(self, name: str, entry: Entry) -> Entry:
        mine, t = self._staging.get(name), entry.tensor
        if mine is None or (mine.shape, mine.dtype, mine.device) != \
                (t.shape, t.dtype, t.device):
            mine = torch.empty(t.shape, dtype=t.dtype, device=t.device)
            self._staging[name] = mine
        with torch.no_grad():
            mine.copy_(t)
        return entry._replace(tensor=mine)

    def _disagree(self, types: List[Any], blobs: List[str]) -> None:
        """Raise the error of ranks whose states differ."""
        mine = {name: text_of(code, shape) for name, code, shape in types}
        mine.update({name: "no tensor" for name in blobs})
        all_of = ranks.gather(list(mine.items()))
        first = dict(map(tuple, all_of[0]))
        for rank, theirs in enumerate(all_of):
            other = dict(map(tuple, theirs))
            for name in [*first, *other]:
                if first.get(name) != other.get(name):
                    raise ValueError(
                        f"the states of the ranks differ: {name} is "
                        f"{first.get(name, 'absent')} on rank 0 and "
                        f"{other.get(name, 'absent')} on rank {rank}; what is "
                        f"of one rank alone is to be in Own()")
            if list(first) != list(other):
                raise ValueError(f"the states of the ranks differ: the tensors "
                                 f"of rank {rank} have another order than "
                                 f"those of rank 0")
        raise ValueError("the states of the ranks differ")

    # -- loading --

    def latest(self) -> Optional[int]:
        """The step of the newest complete checkpoint, None if there is none."""
        if self.handle.is_lost:
            self.handle.renew()
        return self.handle.ckpt.latest()

    def load(self, state: Dict[str, Any]) -> Optional[int]:
        """Load the newest intact checkpoint into the state, on any number of
        ranks, and return its step; None if there is none (start afresh). One
        that is damaged is passed over, with a line on stderr.

        Tensors are loaded in place, dicts and lists keep their identity, objects
        get their ``load_state_dict()`` called, and what the state has not, but
        an empty dict or list, None, or an optimizer has room for, is made new,
        on the host. Objects that were pickled are unpickled: so load only from
        a directory into which nobody else can write.

        Raises :class:`Mismatch`, and changes nothing, when the newest intact
        one is of another program: the text has the first names that differ,
        both ways, or the shapes; ValueError when a newer slurm-dt wrote it."""
        error, tree = None, None
        try:
            if not isinstance(state, dict):
                raise ValueError(f"a state is a dict, not a "
                                 f"{type(state).__name__}")
            tree = Tree(state, values=False)
        except Exception as e:
            error = e
        ranks.agree(None, error)
        return self._load_any(state, tree)

    def _load_any(self, state: Dict[str, Any], tree: Tree) -> Optional[int]:
        """Try the structures that checkpoints have; libdt takes the newest one
        that is intact, or says that it has another."""
        if self.latest() is None:
            return None
        differs: Optional[_dt.Mismatch] = None
        for step, is_sure, there in structure.find(self.handle.dir):
            text = compare(tree, there)
            if any(ranks.agree(bool(text))):
                if is_sure and differs is None:
                    differs = _dt.Mismatch(
                        f"checkpoint step-{step:012d} in "
                        f"{structure.folder(self.handle.dir)} is of another "
                        f"program: {text or 'on another rank'}")
                continue
            try:
                return self._load(state, tree, there)
            except _dt.Mismatch as e:
                differs = differs or e
        if differs is not None:
            raise differs
        self.handle.renew()
        return self.handle.ckpt.load()  # an error that says why

    def _load(self, state: Dict[str, Any], tree: Tree, there: Structure
              ) -> Optional[int]:
        entries = self.memory(tree, there)
        self.handle.renew()
        self.handle.add(entries)
        step = self.handle.ckpt.load()
        if step is None:
            return None
        loaded = {name: e.tensor for name, e in entries.items()}
        error = None
        try:
            self._put(state, tree, loaded)
        except Exception as e:
            error = e
        ranks.agree(None, error)
        return step

    def memory(self, tree: Tree, there: Structure) -> Dict[str, Entry]:
        """For each tensor of the checkpoint, where it is to be loaded."""
        entries = {}
        for name, thing in there.items():
            if thing.kind == "blob":
                continue
            entry = tree.entries.get(name)
            if entry is None:
                entry = _fresh(name, thing.code, thing.shape)
            elif not entry.direct:
                t = entry.tensor
                entry = entry._replace(
                    tensor=torch.empty(t.shape, dtype=t.dtype, device=t.device))
            entries[name] = entry
        return entries

    def _put(self, state: Dict[str, Any], tree: Tree, loaded: Dict[str, Any]
             ) -> None:
        blob = self.handle.ckpt.get_blob(STATE)
        if not blob:  # a program in C has saved it: tensors alone
            for name in set(loaded) & set(tree.entries):
                if not tree.entries[name].direct:
                    tree.entries[name].tensor.copy_(loaded[name])
            for path, value in tree.objects.items():
                value.load_state_dict(tree.states[path])
            return
        head, parts = unpack(blob)
        if "state" not in head:
            raise ValueError("the checkpoint was saved by dcp.save: load it by "
                             "dcp.load with Reader")
        if head["version"] > _VERSION:
            raise ValueError(f"{STATE} is of version {head['version']}, this "
                             f"slurm-dt reads {_VERSION}: a newer one wrote it")
        Decoder(parts, loaded, tree).decode(head["state"], state)
        mine = self.handle.ckpt.get_blob(OWN)
        if mine is not None:
            set_own(tree.own, mine)
        elif tree.own and _dt.place()[0] == head["ranks"]:
            print(f"slurm_dt: the checkpoint is of {head['ranks']} ranks, this "
                  f"job has {_dt.place()[1]}: those beyond keep their own "
                  f"{', '.join(tree.own)}", file=sys.stderr, flush=True)

    # -- when --

    def need(self, step: int) -> bool:
        """Is it time for a checkpoint after this step? The same on all ranks:
        yes when the job has notice to leave, when its time runs out, and when
        the interval of ``--dt-ckpt-interval`` has passed. To be called after
        each step: it is a barrier, with which the notice goes along."""
        ranks.barrier()
        return self.handle.is_lost or self.handle.ckpt.need(step)


def _fresh(name: str, code: int, shape: Tuple[int, ...]) -> Entry:
    """Memory for a tensor that the program has not yet."""
    dtype = dtype_of(name, code)
    local = shape[:len(shape) - len(element_bytes(dtype))]
    return Entry(torch.empty(local, dtype=dtype), code, shape, None, None, True)
