# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""The storage of torch.distributed.checkpoint: its checkpoints in the format of
libdt, complete or absent, loaded on any number of ranks.

    dcp.save(state, storage_writer=ckpt.Writer("ckpt"))
    dcp.load(state, storage_reader=ckpt.Reader("ckpt"))
"""

import base64
import dataclasses
import os
import re
import threading
from typing import Any, Dict, List, Optional, Tuple, Union

import torch

_LEAST = (2, 15)
_version = re.match(r"(\d+)\.(\d+)", torch.__version__)
if not _version or tuple(map(int, _version.groups())) < _LEAST:
    raise ImportError(
        f"slurm_dt.ckpt.Writer and Reader need PyTorch 2.15 or later, and this "
        f"is {torch.__version__}: use slurm_dt.ckpt.Directory, or a newer torch")

from slurm_dt import _dt  # noqa: E402
from slurm_dt.ckpt import ranks, structure  # noqa: E402
from slurm_dt.ckpt.directory import STATE, Directory  # noqa: E402
from slurm_dt.ckpt.tree import (  # noqa: E402
    NATIVE, RESERVED, U8, Entry, dtype_of, element_bytes, name_of, of_bytes,
    bytes_of, pack, unescape, unpack)
from torch.distributed.checkpoint.metadata import (  # noqa: E402
    BytesStorageMetadata, ChunkStorageMetadata, Metadata, StorageMeta,
    TensorProperties, TensorStorageMetadata)
from torch.distributed.checkpoint.planner import (  # noqa: E402
    LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType)
from torch.distributed.checkpoint.storage import (  # noqa: E402
    StorageReader, StorageWriter, WriteResult)
from torch.futures import Future  # noqa: E402

__all__ = ["Reader", "Writer"]

_VERSION = 1  # of what the blob has


def _done(value: Any) -> Any:
    future: Any = Future()
    future.set_result(value)
    return future


def _name(fqn: str, dtype: Any) -> str:
    """As in the checkpoint, and to be had back from it."""
    name = name_of(fqn, dtype)
    if name.startswith(RESERVED) or _fqn(name, dtype) != fqn:
        raise ValueError(f"{fqn}: a name has at most 200 characters, and does "
                         f"not begin with {RESERVED}")
    return name


def _fqn(name: str, dtype: Any) -> str:
    suffix = "" if dtype in NATIVE else ":" + str(dtype).replace("torch.", "")
    return unescape(name[:len(name) - len(suffix)])


def _check_thread(what: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            f"{what} is called in another thread, as by async_save, where it "
            f"would disturb the collectives of the program: use dcp.save with "
            f"Writer(dir, background=True), which returns after one copy")


def _step_of(checkpoint_id: Any) -> Optional[int]:
    if checkpoint_id is None:
        return None
    text = os.fspath(checkpoint_id) if isinstance(checkpoint_id, os.PathLike) \
        else f"{checkpoint_id}"
    if not re.fullmatch(r"\d+", text):
        raise ValueError(f"checkpoint_id: {text!r}, expected None or the number "
                         f"of the training step: the directory is given to "
                         f"Writer and Reader")
    return int(text)


class Writer(StorageWriter):
    """Saves into a directory, for ``dcp.save(..., storage_writer=Writer(dir))``
    on all ranks of the world. To be kept for the next save.

    ``dir``, ``keep``: as for :class:`Directory`. ``checkpoint_id`` of
    ``dcp.save`` is the training step; without one it is the next after the
    newest. ``background``: return after one copy, and write meanwhile; the next
    save waits, and raises what went wrong. On an error every rank raises, and
    older checkpoints stay as they are. ``async_save`` is not served."""

    def __init__(self, dir: Optional[str] = None, keep: Optional[int] = None,
                 background: bool = False) -> None:
        self.directory = Directory(dir, keep)
        self.background = background
        self.step: Optional[int] = None

    def reset(self, checkpoint_id: Any = None) -> None:
        self.step = _step_of(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:
        pass

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return re.fullmatch(r"\d+", f"{checkpoint_id}") is not None

    def storage_meta(self) -> Optional[StorageMeta]:
        return None

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: List[SavePlan]) -> List[SavePlan]:
        """Each rank has to name what any has."""
        size = _dt.place()[1]
        if len(plans) != size:
            raise ValueError(f"{len(plans)} ranks save, but the world has "
                             f"{size}: all of them call dcp.save, without "
                             f"process_group or no_dist")
        if not all(plan.usable for plan in plans):
            raise ValueError("a planner with enable_plan_caching is not served: "
                             "leave it out")
        tensors: Dict[str, Any] = {}
        for plan in plans:
            for item in plan.items:
                data = item.tensor_data
                tensors[item.index.fqn] = data and (data.properties.dtype,
                                                    tuple(data.size))
        return [dataclasses.replace(plan, storage_data=tensors)
                for plan in plans]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        _check_thread("Writer")
        error, entries, blobs = None, {}, {}
        mine: Dict[str, Any] = {}
        try:
            entries, mine = self._collect(plan, planner)
        except Exception as e:
            error = e
        ranks.agree(None, error)
        small = {fqn: base64.b64decode(text)
                 for of_rank in ranks.gather(mine)
                 for fqn, text in of_rank.items()}
        self._complete(plan.storage_data, entries, small)
        objects = {fqn: data for fqn, data in sorted(small.items())
                   if plan.storage_data[fqn] is None}
        blobs[STATE] = pack({"version": _VERSION, "dcp": list(objects)},
                            list(objects.values()))
        for fqn in objects:
            blobs[_name(fqn, torch.uint8)] = b""
        self.directory.publish(entries, blobs)
        step = self.step
        if step is None:
            newest = self.directory.latest()
            step = 0 if newest is None else newest + 1
        self.step = None
        handle = self.directory.handle.ckpt
        (handle.save_async if self.background else handle.save)(step)
        return _done([WriteResult(index=item.index, size_in_bytes=0,
                                  storage_data=None) for item in plan.items])

    def _collect(self, plan: SavePlan, planner: SavePlanner
                 ) -> Tuple[Dict[str, Entry], Dict[str, str]]:
        """The slices of this rank; and in base64 what has no slice of nothing,
        objects and scalars."""
        entries: Dict[str, Entry] = {}
        small: Dict[str, str] = {}
        for item in plan.items:
            fqn, data = item.index.fqn, planner.resolve_data(item)
            if item.type is WriteItemType.BYTE_IO:
                small[fqn] = base64.b64encode(data.getvalue()).decode()
                continue
            if data.dim() == 0:
                small[fqn] = base64.b64encode(bytes_of(data)).decode()
                continue
            name = _name(fqn, data.dtype)
            if name in entries:
                raise ValueError(f"{fqn}: this rank has several parts of it: "
                                 f"libdt saves one of each rank")
            more = element_bytes(data.dtype)
            chunk, size = item.tensor_data.chunk, item.tensor_data.size
            entries[name] = Entry(
                data.detach(), NATIVE.get(data.dtype, U8), tuple(size) + more,
                tuple(chunk.offsets) + (0,) * len(more),
                tuple(chunk.sizes) + more,
                data.is_contiguous() and not data.is_conj()
                and not data.is_neg())
        return entries, small

    def _complete(self, tensors: Dict[str, Any], entries: Dict[str, Entry],
                  small: Dict[str, bytes]) -> None:
        """The scalars, and slices of nothing of what other ranks have."""
        for fqn, known in tensors.items():
            if known is None:
                continue
            dtype, size = known
            name, code = _name(fqn, dtype), NATIVE.get(dtype, U8)
            shape = size + element_bytes(dtype)
            if not size:
                entries[name] = Entry(of_bytes(small[fqn], dtype, []), code,
                                      shape, None, None, False)
            elif name not in entries:
                none = (0,) * len(shape)
                entries[name] = Entry(torch.empty(0), code, shape, none, none,
                                      True)

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]
               ) -> None:
        """Nothing: the checkpoint is complete already."""

    def wait(self) -> None:
        """Wait until what is written in the background is on disk. Raises the
        error with which it ended."""
        self.directory.wait()

    def close(self) -> None:
        """Wait, then close."""
        self.directory.close()


class Reader(StorageReader):
    """Loads the newest intact checkpoint of a directory, for ``dcp.load(...,
    storage_reader=Reader(dir))`` on all ranks of the world; their number may be
    another than that of the save. The program may take a part of the tensors.

    ``step`` is that of the checkpoint that was loaded. Objects that were
    pickled are unpickled, as by all of torch.distributed.checkpoint. Raises
    FileNotFoundError when there is none, and what :class:`Directory` raises."""

    def __init__(self, dir: Optional[str] = None) -> None:
        self.directory = Directory(dir, 0)
        self.step: Optional[int] = None
        self.there: structure.Structure = {}

    def reset(self, checkpoint_id: Union[str, None] = None) -> None:
        if checkpoint_id is not None:
            raise ValueError("Reader loads the newest checkpoint: leave "
                             "checkpoint_id out")

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return False

    def close(self) -> None:
        """Close the directory, so that another one can open it."""
        self.directory.close()

    def read_metadata(self) -> Metadata:
        _check_thread("Reader")
        if self.directory.latest() is None:
            raise FileNotFoundError(
                f"no checkpoint in {structure.folder(self.directory.handle.dir)}")
        found = [there for _, is_sure, there
                 in structure.find(self.directory.handle.dir) if is_sure]
        if not found:
            self.directory.handle.ckpt.load()  # an error that says why
            raise FileNotFoundError("no checkpoint on this node's disks")
        self.there = found[0]
        known: Dict[str, Any] = {}
        for name, thing in self.there.items():
            if thing.kind == "blob":
                if not name.startswith(RESERVED):
                    known[unescape(name)] = BytesStorageMetadata()
                continue
            dtype = dtype_of(name, thing.code)
            shape = thing.shape
            shape = torch.Size(shape[:len(shape) - len(element_bytes(dtype))])
            known[_fqn(name, dtype)] = TensorStorageMetadata(
                TensorProperties(dtype=dtype), shape,
                [ChunkStorageMetadata(torch.Size([0] * len(shape)), shape)])
        return Metadata(known)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool,
                              *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: List[LoadPlan]) -> List[LoadPlan]:
        size = _dt.place()[1]
        if len(plans) != size:
            raise ValueError(f"{len(plans)} ranks load, but the world has "
                             f"{size}: all of them call dcp.load")
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        error, entries, copies = None, {}, []
        try:
            entries, copies = self._memory(plan, planner)
        except Exception as e:
            error = e
        ranks.agree(None, error)
        handle = self.directory.handle
        handle.renew()
        handle.add(entries)
        self.step = handle.ckpt.load()
        for item, target, source in copies:
            if source is not None:
                with torch.no_grad():
                    target.copy_(source)
            planner.commit_tensor(item, target)
        self._objects(plan, planner)
        return _done(None)

    def _memory(self, plan: LoadPlan, planner: LoadPlanner
                ) -> Tuple[Dict[str, Entry], List[Any]]:
        """Where this rank loads each tensor, and what is then to be copied."""
        wanted: Dict[str, List[Any]] = {}
        for item in plan.items:
            if item.type is LoadItemType.TENSOR:
                wanted.setdefault(item.storage_index.fqn, []).append(item)
        entries: Dict[str, Entry] = {}
        copies: List[Any] = []
        for name, thing in self.there.items():
            if thing.kind == "blob":
                continue
            dtype = dtype_of(name, thing.code)
            items = wanted.get(_fqn(name, dtype), [])
            entries[name] = self._one(thing, dtype, items, planner, copies)
        return entries, copies

    def _one(self, thing: structure.Thing, dtype: Any, items: List[Any],
             planner: LoadPlanner, copies: List[Any]) -> Entry:
        more = element_bytes(dtype)
        dims = len(thing.shape) - len(more)
        low = [min((i.storage_offsets[d] for i in items), default=0)
               for d in range(dims)]
        high = [max((i.storage_offsets[d] + i.lengths[d] for i in items),
                    default=0) for d in range(dims)]
        extent = tuple(h - n for h, n in zip(high, low))
        targets = [planner.resolve_tensor(item) for item in items]
        box = targets[0].detach() if len(items) == 1 else None
        if box is None or not box.is_contiguous() or box.dtype != dtype or \
                box.device.type not in ("cpu", "cuda"):
            box = torch.empty(extent, dtype=dtype)
        for item, target in zip(items, targets):
            part = box
            for d in range(dims):
                part = part.narrow(d, item.storage_offsets[d] - low[d],
                                   item.lengths[d])
            same = target.data_ptr() == box.data_ptr()
            copies.append((item, target, None if same else part))
        if not extent and not dims and not more:
            return Entry(box, thing.code, thing.shape, None, None, True)
        empty = 0 in extent
        return Entry(box, thing.code, thing.shape,
                     (0,) * len(thing.shape) if empty
                     else tuple(low) + (0,) * len(more),
                     (0,) * len(thing.shape) if empty else extent + more, True)

    def _objects(self, plan: LoadPlan, planner: LoadPlanner) -> None:
        import io
        items = [i for i in plan.items if i.type is LoadItemType.BYTE_IO]
        if not items:
            return
        head, parts = unpack(self.directory.handle.ckpt.get_blob(STATE) or b"")
        if "dcp" not in head or head["version"] > _VERSION:
            raise ValueError("the checkpoint was not saved by dcp.save, or by a "
                             "newer slurm-dt: load it with Directory.load")
        known = dict(zip(head["dcp"], parts))
        for item in items:
            planner.load_bytes(item, io.BytesIO(known[item.storage_index.fqn]))
