# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""A state as a tree: the tensors in it by name, and all else as JSON.

A tree is made of dicts, lists, tuples, tensors, plain values, and objects with
state_dict() and load_state_dict(). Its JSON has plain values as they are, and
for the others an object with one of these keys:

    {"dict": [[key, value], ...]}      {"tuple": [value, ...]}
    {"float": "nan"}                   what JSON cannot write
    {"tensor": name}                   by its name in the checkpoint
    {"part": i, "dtype": "float32", "shape": [2, 3]}  in this blob
    {"bytes": i}
    {"array": i, "dtype": "<f4", "shape": [2, 3]}     NumPy's
    {"pickle": i}                      any other object
    {"own": path}                      of each rank, in its own blob

where i is a part of the blob: see pack().
"""

import ctypes
import hashlib
import json
import math
import pickle
import random
import re
import sys
import urllib.parse
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch


# dt_dtype_t; other types are bytes, whose names end with their type
NATIVE = {torch.int8: 0, torch.uint8: 1, torch.int32: 2, torch.int64: 3,
          torch.float16: 4, torch.bfloat16: 5, torch.float32: 6,
          torch.float64: 7}
for _name, _code in (("float8_e4m3fn", 8), ("float8_e5m2", 9)):
    if hasattr(torch, _name):
        NATIVE[getattr(torch, _name)] = _code
TORCH = {code: dtype for dtype, code in NATIVE.items()}
U8 = 1

_NAME_MOST = 200  # bytes, DT_TENSOR_NAME_MAX
_DEVICES = ("cpu", "cuda")
RESERVED = "slurm_dt."  # begins the names of blobs


# ---- what each rank has of its own ----

class Own:
    """A value that is not the same on all ranks: each rank saves its own, and
    gets it back in ``value``. Tensors in it are copied twice, so it is for
    small things. On another number of ranks a rank has that of the rank with
    its number before; the ranks beyond keep what they have, and one of them
    says so on stderr.

    ``value`` may be any value of a state, objects with ``state_dict()`` and
    ``load_state_dict()`` among them."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self) -> Any:
        """What is to be saved."""
        return self.value

    def set(self, value: Any) -> None:
        """What was loaded."""
        self.value = value


class Random(Own):
    """The states of the random number generators of this rank: torch's on the
    host and on its GPUs, Python's, and NumPy's if that has been imported."""

    def __init__(self) -> None:
        super().__init__(None)

    def get(self) -> Any:
        state: Dict[str, Any] = {"python": random.getstate(),
                                 "torch": torch.get_rng_state()}
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
        if "numpy" in sys.modules:
            state["numpy"] = sys.modules["numpy"].random.get_state()
        return state

    def set(self, value: Any) -> None:
        random.setstate(value["python"])
        torch.set_rng_state(value["torch"])
        if "cuda" in value and torch.cuda.is_available():
            states = value["cuda"][:torch.cuda.device_count()]
            torch.cuda.set_rng_state_all(states)
        if "numpy" in value and "numpy" in sys.modules:
            sys.modules["numpy"].random.set_state(value["numpy"])


# ---- names ----

def escape(text: str) -> str:
    """In printable ASCII, without control characters."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text
    return "".join(chr(c) if 32 <= c < 127 and c != 37 else f"%{c:02X}"
                   for c in text.encode("utf-8", "surrogatepass"))


def unescape(name: str) -> str:
    """What an escaped text was."""
    return urllib.parse.unquote(name, errors="surrogatepass")


def name_of(path: str, dtype: Any) -> str:
    """The name of a tensor in the checkpoint."""
    name = escape(path)
    if dtype not in NATIVE:
        name += ":" + str(dtype).replace("torch.", "")
    if len(name) > _NAME_MOST:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        name = name[:_NAME_MOST - 17] + "~" + digest
    return name


def dtype_of(name: str, code: int) -> Any:
    """The type of a tensor that has this name and element type there."""
    word = re.search(r":(\w+)$", name)
    dtype = getattr(torch, word.group(1), None) if word else None
    if code == U8 and isinstance(dtype, torch.dtype) and dtype not in NATIVE:
        return dtype
    return TORCH.get(code)


# ---- tensors ----

class Entry(NamedTuple):
    """A tensor, or this rank's part of one."""
    tensor: Any  # strided, of this rank
    code: int  # dt_dtype_t
    shape: Tuple[int, ...]  # of the whole; of bytes with those of an element
    offset: Optional[Tuple[int, ...]]  # None: all of it, the same on all ranks
    extent: Optional[Tuple[int, ...]]
    direct: bool  # its memory is as the checkpoint has it


def element_bytes(dtype: Any) -> Tuple[int, ...]:
    """The dimension that a type which libdt does not have adds to a shape."""
    if dtype in NATIVE:
        return ()
    size = torch.empty((), dtype=dtype).element_size()
    return () if size == 1 else (size,)


def _is_direct(tensor: Any) -> bool:
    return (tensor.is_contiguous() and not tensor.is_conj()
            and not tensor.is_neg())


def _box_of(tensor: Any, path: str) -> Any:
    """(local tensor, whole shape, offset, extent) of a DTensor."""
    kinds = [type(p).__name__ for p in tensor.placements]
    if not set(kinds) <= {"Shard", "Replicate"}:
        raise ValueError(
            f"{path}: a DTensor with the placements {kinds}: those that can be "
            f"saved are Shard and Replicate: redistribute it")
    local = tensor.to_local().detach()
    if "Shard" not in kinds:
        return local, tuple(tensor.shape), None, None
    chunk = tensor.__create_chunk_list__()[0]
    offset, extent = tuple(chunk.offsets), tuple(chunk.sizes)
    if local.numel() == 0:
        extent = (0,) * len(offset)
        offset = extent
    return local, tuple(tensor.shape), offset, extent


def entry_of(tensor: Any, path: str) -> Entry:
    """What the checkpoint has of this tensor. ValueError where it cannot have
    it."""
    shape, offset, extent = tuple(tensor.shape), None, None
    if hasattr(tensor, "placements") and hasattr(tensor, "to_local"):
        tensor, shape, offset, extent = _box_of(tensor, path)
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise ValueError(f"{path}: a tensor of layout {tensor.layout}, dtype "
                         f"{tensor.dtype}: only dense ones can be saved: make "
                         f"it dense")
    if tensor.device.type not in _DEVICES:
        raise ValueError(
            f"{path}: a tensor on device {tensor.device}: those on cpu and cuda "
            f"can be saved: give a copy of it there")
    more = element_bytes(tensor.dtype)
    if offset is not None:
        offset, extent = offset + (0,) * len(more), extent + more
    return Entry(tensor.detach(), NATIVE.get(tensor.dtype, U8), shape + more,
                 offset, extent, _is_direct(tensor))


def bytes_of(tensor: Any) -> bytes:
    """Its elements, row-major; a copy."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(flat.data_ptr(),
                            flat.numel() * flat.element_size())


def of_bytes(data: bytes, dtype: Any, shape: List[int]) -> Any:
    tensor = torch.empty(shape, dtype=dtype)
    if len(data) != tensor.numel() * tensor.element_size():
        raise ValueError(f"{len(data)} bytes for a tensor {dtype} {shape}")
    ctypes.memmove(tensor.data_ptr(), data, len(data))
    return tensor


# ---- blobs ----

def pack(head: Any, parts: List[bytes]) -> bytes:
    """8 bytes, little-endian: the length of the JSON; the JSON: an object with
    "head" and the lengths of the "parts"; the parts, one behind the other."""
    text = json.dumps({"head": head, "parts": [len(p) for p in parts]},
                      allow_nan=False, separators=(",", ":")).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def unpack(blob: bytes) -> Tuple[Any, List[bytes]]:
    """What was packed. ValueError if it was not."""
    end = 8 + int.from_bytes(blob[:8], "little")
    described = json.loads(blob[8:end])
    parts = []
    for length in described["parts"]:
        parts.append(blob[end:end + length])
        end += length
    if end != len(blob):
        raise ValueError(f"{len(blob)} bytes, expected {end}")
    return described["head"], parts


# ---- from a state ----

def is_stateful(value: Any) -> bool:
    """Whether it has a state of its own."""
    return not isinstance(value, type) and all(
        callable(getattr(value, name, None))
        for name in ("state_dict", "load_state_dict"))


class Tree:
    """A state, walked. ``values`` False: of a state that is to be loaded into,
    where only tensors matter."""

    def __init__(self, state: Any, values: bool = True,
                 loose: Optional[Set[str]] = None,
                 own: bool = False) -> None:
        self.values = values
        self.loose = loose or set()  # tensors to be kept in the blob
        self.is_own = own
        self.entries: Dict[str, Entry] = {}
        self.aliases: Dict[str, str] = {}  # other names of the same memory
        self.in_blob: Set[str] = set()  # names of tensors there
        self.open: List[str] = []  # below these may be other tensors
        self.lenient: List[str] = []  # and these may be missing, too
        self.objects: Dict[str, Any] = {}  # with a state of their own, by path
        self.states: Dict[str, Any] = {}  # and their states
        self.own: Dict[str, Own] = {}
        self.parts: List[bytes] = []
        self._memory: Dict[Any, str] = {}
        self._alive: List[Any] = []  # no address is used twice meanwhile
        self.head = self._encode(state, "")

    def _part(self, data: bytes) -> int:
        self.parts.append(data)
        return len(self.parts) - 1

    def _tensor(self, tensor: Any, path: str) -> Any:
        name = name_of(path, tensor.dtype)
        if self.is_own or name in self.loose:
            if hasattr(tensor, "placements"):
                raise ValueError(f"{path}: a DTensor is not one rank's own")
            self.in_blob.add(name)
            if not self.values:
                return None
            dtype = str(tensor.dtype).replace("torch.", "")
            return {"part": self._part(bytes_of(tensor)), "dtype": dtype,
                    "shape": list(tensor.shape)}
        if name in self.entries or name in self.aliases:
            raise ValueError(f"{path}: two tensors of the state have this name")
        if name.startswith(RESERVED):
            raise ValueError(f"{path}: names do not begin with {RESERVED}")
        entry = entry_of(tensor, path)
        self._alive.append(tensor)
        t = entry.tensor
        key = (t.data_ptr(), t.dtype, tuple(t.shape), t.stride(), entry.shape,
               entry.offset, t.device)
        if t.numel() > 0 and key in self._memory:
            self.aliases[name] = self._memory[key]
            return {"tensor": self._memory[key]}
        self._memory[key] = name
        self.entries[name] = entry
        return {"tensor": name}

    def _key(self, key: Any, path: str) -> Any:
        if key is None or type(key) in (bool, int, str, float, tuple):
            return self._encode(key, path)
        return {"pickle": self._part(self._pickle(key, path))}

    def _dict(self, value: Any, path: str) -> Any:
        if not value:
            self.open.append(path)
        pairs = []
        for key, item in value.items():
            below = f"{path}.{key}" if path else f"{key}"
            pairs.append([self._key(key, below), self._encode(item, below)])
        return {"dict": pairs}

    def _list(self, value: Any, path: str) -> List[Any]:
        if not value:
            self.open.append(path)
        return [self._encode(item, f"{path}.{i}" if path else f"{i}")
                for i, item in enumerate(value)]

    def _object(self, value: Any, path: str) -> Any:
        state = value.state_dict()
        self.objects[path], self.states[path] = value, state
        if not isinstance(value, torch.nn.Module):
            self.open.append(path)
            self.lenient.append(path)
        return self._encode(state, path)

    def _pickle(self, value: Any, path: str) -> bytes:
        try:
            return pickle.dumps(value, 4) if self.values else b""
        except Exception as error:
            raise ValueError(f"{path}: a {type(value).__name__} cannot be "
                             f"saved: {error}") from None

    def _encode(self, value: Any, path: str) -> Any:
        if value is None or type(value) in (bool, int, str):
            if value is None:
                self.open.append(path)
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        if isinstance(value, dict):
            return self._dict(value, path)
        if type(value) is list:
            return self._list(value, path)
        if type(value) is tuple:
            return {"tuple": self._list(value, path)}
        if isinstance(value, Own):
            if self.is_own:
                raise ValueError(f"{path}: it is in a value that is this "
                                 f"rank's own already")
            self.own[path] = value
            return {"own": path}
        if is_stateful(value):
            return self._object(value, path)
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": self._part(bytes(value))}
        if type(value).__module__ == "numpy" and type(value).__name__ == \
                "ndarray" and not value.dtype.hasobject and \
                value.dtype.names is None:
            return {"array": self._part(value.tobytes()),
                    "dtype": value.dtype.str, "shape": list(value.shape)}
        return {"pickle": self._part(self._pickle(value, path))}


def own_blob(own: Dict[str, Own]) -> bytes:
    """The values of this rank alone."""
    tree = Tree({path: one.get() for path, one in own.items()}, own=True)
    return pack(tree.head, tree.parts)


# ---- into a state ----

_NONE = object()


def is_below(path: str, roots: List[str]) -> bool:
    """Whether the path, or the name, is one of the roots, or below one."""
    return any(not root or path == root
               or path.startswith((root + ".", root + ":")) for root in roots)


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else f"{key}"


class Decoder:
    """Puts what was loaded into the state that ``tree`` has walked."""

    def __init__(self, parts: List[bytes], loaded: Dict[str, Any],
                 tree: Optional[Tree] = None) -> None:
        self.parts = parts
        self.loaded = loaded  # tensors by name
        self.tree = tree

    def decode(self, head: Any, old: Any = _NONE, path: str = "") -> Any:
        """The value; ``old``, as far as it can, becomes it."""
        if self.tree and path in self.tree.states:
            old.load_state_dict(
                self._value(head, self.tree.states[path], path))
            return old
        return self._value(head, old, path)

    def _value(self, head: Any, old: Any, path: str) -> Any:
        if isinstance(head, list):
            new = self._items(head, old, path)
            if type(old) is list:
                old[:] = new
                return old
            return new
        if not isinstance(head, dict):
            return head
        for kind, function in _KINDS.items():
            if kind in head:
                return function(self, head, old, path)
        raise ValueError(f"{path}: an unknown kind of value: a newer slurm-dt "
                         f"may have written it")

    def _items(self, heads: List[Any], old: Any, path: str) -> List[Any]:
        olds = old if type(old) in (list, tuple) else ()
        return [self.decode(head, olds[i] if i < len(olds) else _NONE,
                            _below(path, i)) for i, head in enumerate(heads)]

    def _tuple(self, head: Any, old: Any, path: str) -> Any:
        return tuple(self._items(head["tuple"], old, path))

    def _dict(self, head: Any, old: Any, path: str) -> Any:
        new = old if isinstance(old, dict) else {}
        keys = [self._value(key, _NONE, path) for key, _ in head["dict"]]
        if self.tree and is_below(path, self.tree.lenient):
            for key in set(new) - set(keys):
                del new[key]
        for key, (_, value) in zip(keys, head["dict"]):
            new[key] = self.decode(value, new.get(key, _NONE),
                                   _below(path, key))
        return new

    def _into(self, tensor: Any, old: Any) -> Any:
        """The tensor, in the one that is there, if it is as large."""
        if not isinstance(old, torch.Tensor):
            return tensor
        target = old.to_local() if hasattr(old, "placements") else old
        if (target.shape, target.dtype) != (tensor.shape, tensor.dtype):
            return tensor
        if target.data_ptr() != tensor.data_ptr():
            with torch.no_grad():
                target.copy_(tensor)
        return old

    def _tensor(self, head: Any, old: Any, path: str) -> Any:
        return self._into(self.loaded[head["tensor"]], old)

    def _part(self, head: Any, old: Any, path: str) -> Any:
        dtype = getattr(torch, head["dtype"])
        data = self.parts[head["part"]]
        return self._into(of_bytes(data, dtype, head["shape"]), old)

    def _array(self, head: Any, old: Any, path: str) -> Any:
        import numpy
        data = numpy.frombuffer(self.parts[head["array"]],
                                numpy.dtype(head["dtype"]))
        return data.reshape(head["shape"]).copy()

    def _bytes(self, head: Any, old: Any, path: str) -> Any:
        return self.parts[head["bytes"]]

    def _pickle(self, head: Any, old: Any, path: str) -> Any:
        try:
            return pickle.loads(self.parts[head["pickle"]])
        except Exception as error:
            raise ValueError(f"{path}: what was pickled cannot be read: "
                             f"{error}") from None

    def _float(self, head: Any, old: Any, path: str) -> Any:
        return float(head["float"])

    def _own(self, head: Any, old: Any, path: str) -> Any:
        """Only what the program has of its own; else there is no place."""
        return old if isinstance(old, Own) else None


_KINDS = {"dict": Decoder._dict, "tuple": Decoder._tuple,
          "tensor": Decoder._tensor, "part": Decoder._part,
          "array": Decoder._array, "bytes": Decoder._bytes,
          "pickle": Decoder._pickle, "float": Decoder._float,
          "own": Decoder._own}


def set_own(own: Dict[str, Own], blob: bytes) -> None:
    """Give the values of this rank back."""
    head, parts = unpack(blob)
    olds = {path: one.get() for path, one in own.items()}
    decoder = Decoder(parts, {}, Tree(olds, values=False, own=True))
    for path, value in head["dict"]:
        if path in own:
            own[path].set(decoder.decode(value, olds[path], path))
