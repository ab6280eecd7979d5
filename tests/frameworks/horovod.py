# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# horovod.py - what Horovod does with its store, over gloo: all processes put
# their row into a scope and read those of the others
import http.client
import json
import os
import sys
import time

sys.path[0] += "/lib"
import group


def number(name):
    return int(os.environ["HOROVOD_" + name])


rank, size = number("RANK"), number("SIZE")
at = (os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"],
      number("GLOO_RENDEZVOUS_PORT"))


def call(method, path, body=None):
    """A connection for each request, as Horovod makes them."""
    connection = http.client.HTTPConnection(*at, timeout=60)
    connection.request(method, path, body)
    answer = connection.getresponse()
    value = answer.read()
    connection.close()
    return answer.status, value


def gather(scope, own, members, value, done=True):
    """The values of all members of a scope, in order."""
    assert call("PUT", f"/{scope}/{own}", json.dumps(value)) == (200, b"")
    values = []
    while len(values) < members:
        status, found = call("GET", f"/{scope}/{len(values)}")
        assert status in (200, 404), status
        if status == 200:
            values.append(json.loads(found))
        else:
            time.sleep(0.02)
    if done:
        assert call("DELETE", f"/{scope}/{own}")[0] == 200
    return values


mine = group.row(rank)
group.check(gather("global", rank, size, mine), mine)
local = gather("local_" + os.environ["HOROVOD_HOSTNAME"], number("LOCAL_RANK"),
               number("LOCAL_SIZE"), rank)
assert local == sorted(local) and rank in local, local
cross = gather(f"cross_{number('LOCAL_RANK')}", number("CROSS_RANK"),
               number("CROSS_SIZE"), rank)
assert cross[number("CROSS_RANK")] == rank, cross
# One that all have done with may be used again, as after a shutdown.
gather("barrier", rank, size, rank, False)
assert gather("global", rank, size, "again") == ["again"] * size
gather(f"mine_{rank}", 0, 1, rank)
assert call("GET", f"/mine_{rank}/0")[0] == 404
assert call("GET", "/nothing")[0] == 400
print(f"OK rank {rank} of {size}", flush=True)
